"""The central model: a trusted curator holds the rows and releases a model; one file a method."""
