package main

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// readOpenAPI returns an entry for each operation in the OpenAPI documents of a directory. It skips documents whose
// licence does not permit training.
func readOpenAPI(dir string) ([]entry, error) {
	var out []entry
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".json") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		out = append(out, operations(data)...)
		return nil
	})
	return out, err
}

type operation struct {
	OperationID string `json:"operationId"`
	Summary     string
	Description string
	Tags        []string
	Parameters  []parameter
	RequestBody struct {
		Content map[string]struct{ Schema schema }
	}
}

type parameter struct {
	Name, Description string
}

type schema struct {
	Properties map[string]struct{ Description string }
}

// operations returns an entry for each operation in an OpenAPI document, in the order of the paths. It returns none
// if the licence of the document does not permit training.
func operations(data []byte) []entry {
	var doc struct {
		Info struct {
			Title   string
			License struct{ Name string }
		}
		Paths map[string]map[string]json.RawMessage
	}
	if json.Unmarshal(data, &doc) != nil || !permissive(doc.Info.License.Name) {
		return nil
	}
	var out []entry
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
			var op operation
			if !slices.Contains(methods, method) || json.Unmarshal(doc.Paths[path][method], &op) != nil {
				continue
			}
			if e := op.entry(doc.Info.Title, method, path); e.Text != "" {
				out = append(out, e)
			}
		}
	}
	return out
}

var methods = []string{"delete", "get", "patch", "post", "put"}

func permissive(license string) bool {
	for _, name := range []string{"Apache", "MIT", "BSD", "CC0"} {
		if strings.Contains(license, name) {
			return true
		}
	}
	return false
}

func (op *operation) entry(title, method, path string) entry {
	e := entry{Server: title, Name: op.OperationID, Text: plain(op.Description)}
	if summary := plain(op.Summary); summary != "" && !strings.HasPrefix(e.Text, summary) {
		e.Text = strings.TrimSuffix(summary, ".") + ". " + e.Text
	}
	if e.Name == "" {
		e.Name = method + " " + path
	}
	add := func(name, said string) {
		if strings.HasPrefix(name, "X-Amz-") || len(e.Params) > 20 {
			return
		}
		e.Params = append(e.Params, name)
		if said = plain(said); said != "" {
			e.Hints = append(e.Hints, said)
		}
	}
	for _, p := range op.Parameters {
		add(p.Name, p.Description)
	}
	if kinds := slices.Sorted(maps.Keys(op.RequestBody.Content)); len(kinds) > 0 {
		properties := op.RequestBody.Content[kinds[0]].Schema.Properties
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			add(name, properties[name].Description)
		}
	}
	return e
}

// plain returns a text without HTML tags. Sequences of white space are replaced by single spaces.
func plain(text string) string {
	var b strings.Builder
	depth := 0
	for _, r := range text {
		switch {
		case r == '<':
			depth++
		case r == '>' && depth > 0:
			depth--
			b.WriteByte(' ')
		case depth == 0:
			b.WriteRune(r)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
