"""What can be asked for, by address."""
