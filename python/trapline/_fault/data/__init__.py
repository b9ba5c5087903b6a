"""The data of a fault: the tensor's content, the batch, the sample, the data set, what was seen before."""
