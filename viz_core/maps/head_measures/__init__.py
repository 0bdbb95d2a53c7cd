"""The measures of heads, one file each (see `viz_core.maps.register`)."""
