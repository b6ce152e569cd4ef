"""What journeys install: small bundles, the operators of the corpus, and the catalogs that offer them."""
