"""Imported once by the fork server, whose copies are the workers: with one thread, so that it can be forked."""

import os

# Before the libraries that read them are imported.
os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))

from serving.requests.hub import bring_libraries
from serving.runners.worker import load_shipped, registry

bring_libraries()  # of the lab, which would take 6 s of the first visitor to each worker
load_shipped(registry())
