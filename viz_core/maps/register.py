"""Register of the measures of heads, one file each in the folder head_measures.

To add one, write a file there that defines a `Measure`, and its words `measure_NAME` and `about_NAME` in
assets/text/LANGUAGE/attention-view.md. Fingerprints, the attention view and the model lab list the register.
"""

from viz_core.maps.head_measure import Measure
from viz_core.runtime.registry import find_entries

MEASURES = {measure.name: measure for measure in find_entries("viz_core.maps.head_measures", Measure)}
"""Every measure by its name, in the order in which they are listed."""
