"""A model of one ONNX Attention node, run by the reference evaluator and by onnxruntime."""

import numpy as np
import onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

onnxruntime.set_default_logger_severity(4)
_rng = np.random.default_rng(0)


def model(opset, inputs, outputs=("Y",), **attributes):
    """Return the model; the input named "allowed" is boolean, all others are float32."""
    node = helper.make_node("Attention", list(inputs), list(outputs), **attributes)
    kinds = {name: TensorProto.BOOL if name == "allowed" else TensorProto.FLOAT for name in inputs}
    infos = [helper.make_tensor_value_info(name, kind, None) for name, kind in kinds.items()]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs if name]
    graph = helper.make_graph([node], "attention", infos, results)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def reference(proto, feeds):
    """Return its outputs by onnx's reference evaluator."""
    return ReferenceEvaluator(proto).run(None, feeds)


def runtime(proto, feeds):
    """Return its outputs by onnxruntime on the CPU."""
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def tensors(num_queries, num_keys):
    """Return random queries and keys, and values for which the output is the map."""
    queries, keys = (_rng.normal(size=(1, 1, n, 8)).astype(np.float32) for n in (num_queries, num_keys))
    return {"Q": queries, "K": keys, "V": np.eye(num_keys, 8, dtype=np.float32)[None, None]}
