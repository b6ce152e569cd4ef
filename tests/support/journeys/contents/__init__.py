"""What journeys install: small bundles, the operators of the corpus, and the catalogues that offer them."""
