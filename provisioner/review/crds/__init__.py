"""What a changed CustomResourceDefinition does to the objects that exist, and to whatever counts on them."""
