"""The measures of heads, a file each, the roles in one (see `viz_core.maps.register`)."""
