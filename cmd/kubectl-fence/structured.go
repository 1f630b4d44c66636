package main

import (
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"
)

// writeAs writes a value in the format that -o names.
func writeAs(to io.Writer, format string, what any) error {
	var data []byte
	var err error
	switch format {
	case "json":
		data, err = json.MarshalIndent(what, "", "    ")
		data = append(data, '\n')
	case "yaml":
		data, err = yaml.Marshal(what)
	default:
		err = fmt.Errorf("unknown output format %q: json or yaml", format)
	}
	if err != nil {
		return err
	}
	_, err = to.Write(data)
	return err
}
