"""The pictures that packages bring, none of it trusted: of points, or an SVG that holds nothing but a picture."""
