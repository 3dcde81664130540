"""Detection and segmentation: boxes, masks and panoptic maps of images."""
