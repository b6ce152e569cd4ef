"""The pictures that packages bring, none of it trusted: of points, or an SVG that holds nothing but a picture."""

from provisioner.catalogs.icons.keeping import PackageIcon, PointsLeft, kept_icon, told_icon

__all__ = ["PackageIcon", "PointsLeft", "kept_icon", "told_icon"]
