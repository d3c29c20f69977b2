"""A model as an ONNX graph: built of its weights, compared with it, and in int8 where that is wanted.

The graph is written node by node, and not traced, so that its inputs, outputs and axes are the same for every family,
and linear layers run over all tokens of a batch as one matrix, for which onnxruntime has its fastest int8 products.
"""
