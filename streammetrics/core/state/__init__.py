"""The file format of states: arrays, their container, and safe writing of files."""
