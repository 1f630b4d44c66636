package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// imageConfig is what an image says of its process: the part that is used here of the
// OCI image configuration.
type imageConfig struct {
	User       string
	Entrypoint []string
}

// layOut does what `docker build` does, for a Dockerfile that copies programs into
// nothing: without a registry or a container engine. What else a Dockerfile may say is
// an error.
func layOut(dockerfile, dir string) error {
	text, err := os.ReadFile(dockerfile)
	if err != nil {
		return err
	}
	var config imageConfig
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		switch rest := words[1:]; words[0] {
		case "FROM":
			if rest[0] != "scratch" {
				err = errors.New("only FROM scratch can be laid out without a registry")
			}
		case "COPY":
			for _, file := range rest[:len(rest)-1] {
				err = errors.Join(err, copyFile(filepath.Join(filepath.Dir(dockerfile), file), filepath.Join(dir, "rootfs", rest[len(rest)-1], filepath.Base(file))))
			}
		case "USER":
			config.User = rest[0]
		case "ENTRYPOINT":
			err = json.Unmarshal([]byte(strings.Join(rest, " ")), &config.Entrypoint)
		default:
			err = errors.New("not understood")
		}
		if err != nil {
			return fmt.Errorf("%s: %s: %w", dockerfile, strings.TrimSpace(line), err)
		}
	}
	return describe(dir, config)
}

// layOutExample makes an image of an example.
func layOutExample(ctx context.Context, name, dir string) error {
	command := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, "rootfs", name), "./examples/"+name)
	command.Dir = root
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build examples/%s: %w\n%s", name, err, output)
	}
	return describe(dir, imageConfig{User: "65532:65532", Entrypoint: []string{"/" + name}})
}

func describe(dir string, config imageConfig) error {
	data, err := json.Marshal(map[string]any{"config": config})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "config.json"), data, 0o600)
}

// copyFile copies a program, for every user to run.
func copyFile(from, to string) error {
	if output, err := exec.Command("install", "-D", "--mode=755", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	return nil
}
