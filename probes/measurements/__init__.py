"""What is measured with probes; plug-ins and what identifies them."""
