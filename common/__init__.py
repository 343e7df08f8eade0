"""What `data`, `tasks` and `probes` all need; imports none of them."""
