"""HTTP: who may ask, what is read, what is answered."""
