"""Devices, precision, memory and transfers: the little that everything on tensors needs."""
