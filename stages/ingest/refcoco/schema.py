"""The columns of an ingested set of referring segmentation: images, objects, refs, sentences, records.

Plain constants and the standard library only, so that the gate can import them without the readers.
"""

from __future__ import annotations

#: Columns of images/*.parquet and their polars types, a row an image. Heights and widths are in pixels, those of the
#: image table: masks and boxes are in that frame, whatever the size an image is stored with.
IMAGE_COLUMNS: dict[str, str] = {
    "image_id": "Int64",
    "group": "String",
    "file_name": "String",
    "height": "Int64",
    "width": "Int64",
    "found": "Boolean",
    "stored_height": "Int64",
    "stored_width": "Int64",
    "image": "Binary",
    "note": "String",
    "sha256": "String",
}

#: Columns of objects.parquet, a row an annotation of an image that has a ref. Boxes and areas are in pixels; ``area``
#: is that of the mask, ``recorded_area`` what the annotation says. ``counts`` is COCO's packed text of run lengths.
OBJECT_COLUMNS: dict[str, str] = {
    "object_id": "Int64",
    "image_id": "Int64",
    "category_id": "Int64",
    "category": "String",
    "box_x": "Float64",
    "box_y": "Float64",
    "box_width": "Float64",
    "box_height": "Float64",
    "area": "Int64",
    "recorded_area": "Float64",
    "crowd": "Boolean",
    "form": "String",
    "polygons": "Int64",
    "height": "Int64",
    "width": "Int64",
    "counts": "String",
    "fault": "String",
}

#: Columns of refs.parquet, a row a ref; ``split`` is the file's own.
REF_COLUMNS: dict[str, str] = {
    "record_id": "String",
    "ref_id": "Int64",
    "object_id": "Int64",
    "image_id": "Int64",
    "category_id": "Int64",
    "split": "String",
    "sentences": "Int64",
}

#: Columns of sentences.parquet, a row a sentence.
SENTENCE_COLUMNS: dict[str, str] = {
    "sentence_id": "Int64",
    "record_id": "String",
    "position": "Int64",
    "sentence": "String",
    "raw": "String",
    "tokens": "List(String)",
}

#: Summary statistics of one ref and their meaning.
STATISTICS = {
    "mask_area_px": "pixels of the mask",
    "mask_share": "share of the image's pixels that the mask covers",
    "recorded_area_px": "area that the annotation states, in pixels",
    "polygon_area_px": "area inside the annotation's polygons, in pixels; none for run lengths",
    "box_iou": "intersection over union of the annotation's box and the mask's own",
    "outside_px": "farthest that the box or a polygon lies outside the image, in pixels",
    "parts": "number of polygons of the mask",
    "sentences": "number of sentences",
    "shortest_tokens": "number of words in the shortest sentence",
    "longest_tokens": "number of words in the longest sentence",
    "wordless_sentences": "number of sentences without a letter or digit",
    "repeated_sentences": "number of sentences that this ref has already",
    "ambiguous_sentences": "number of sentences that also name another object of the image",
}

_SHARES = ("mask_share", "box_iou", "recorded_area_px", "polygon_area_px", "outside_px")

#: Columns of records.parquet and their polars types; the same for every set, null where a value does not exist.
RECORD_COLUMNS: dict[str, str] = {
    "record_id": "String",
    "group": "String",
    "set": "String",
    "image_id": "Int64",
    "object_id": "Int64",
    "category": "String",
    "source_file": "String",
    "sha256": "String",
    "image_sha256": "String",
    "split": "String",
    **{name: "Float64" if name in _SHARES else "Int64" for name in STATISTICS},
    "crowd": "Boolean",
    "object_found": "Boolean",
    "image_found": "Boolean",
    "size_as_recorded": "Boolean",
    "fault": "String",
}
