"""Scenes of shapes with sentences that each name one of them, in the REFER layout that users of RefCOCO have."""
