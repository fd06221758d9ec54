"""An emotion corpus in SEED's layout: three classes as changes of band power at sources in a spherical head."""
