package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	imagespec "github.com/opencontainers/image-spec/specs-go/v1"
)

// image is what a container is made from.
type image struct {
	rootFS string
	config imagespec.ImageConfig
}

// image finds an image by its exact reference. What is in its directory now counts.
func (a *agent) image(reference string) (*image, error) {
	dir, ok := a.images[reference]
	if !ok {
		return nil, waitFor("ErrImagePull", "no --image of the node is named %q", reference)
	}
	data, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		return nil, waitFor("ErrImagePull", "%w", err)
	}
	var config imagespec.Image
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, waitFor("ErrImagePull", "config.json of %s: %w", dir, err)
	}
	return &image{filepath.Join(dir, "rootfs"), config.Config}, nil
}

// user is the image's user and group, 0 where it says nothing.
func (i *image) user() (user, group int, err error) {
	parts := strings.SplitN(i.config.User, ":", 2)
	ids := []int{0, 0}
	for n, part := range parts {
		if part == "" {
			continue
		}
		if ids[n], err = strconv.Atoi(part); err != nil {
			return 0, 0, fmt.Errorf("the image's user must be a number, not %q", i.config.User)
		}
	}
	return ids[0], ids[1], nil
}
