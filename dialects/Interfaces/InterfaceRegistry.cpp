// placeholder so that the library has a source
