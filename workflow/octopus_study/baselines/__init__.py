"""The methods that several studies compare, one file for each library. On crops each is a `CropMethod`."""
