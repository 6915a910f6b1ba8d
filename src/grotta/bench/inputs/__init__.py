"""What a spec names: the data set, the stream and the network of a cell."""
