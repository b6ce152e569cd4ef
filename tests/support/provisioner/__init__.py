"""What tests of the library build with: manifests, contents, roles, schemas, and what is known of them."""
