package main

import "io/fs"

// The permissions of files in containers: whatever user they have reads them, and
// writes those that are for it. On the node nobody else comes this far.
var (
	openFile   fs.FileMode = 0o644
	openDir    fs.FileMode = 0o755
	sharedFile fs.FileMode = 0o666
	sharedDir  fs.FileMode = 0o777
)
