"""Devices, precision, memory and transfers between host and GPU."""
