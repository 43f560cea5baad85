package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// quoted matches a JavaScript string in double or single quotes, or in backquotes without a substitution such as
// ${x}.
const quoted = "(\"(?:[^\"\\\\\\n]|\\\\.)*\"|'(?:[^'\\\\\\n]|\\\\.)*'|`(?:[^`\\\\$]|\\\\.)*`)"

var (
	// defined matches the definition of a tool in a script. It is an object with a name and a description, or a call
	// of a function with a name and a description as arguments.
	defined = regexp.MustCompile(`(?:\bname["']?:\s*|[tT]ool\(\s*)` + quoted +
		`\s*,[^{}]{0,200}?(?:\{\s*)?(?:title:\s*` + quoted + `\s*,\s*)?(?:["']?description["']?:\s*)?` + quoted)
	// hinted matches the name of a parameter and its description.
	hinted = regexp.MustCompile(
		`\b([a-zA-Z][a-zA-Z0-9_]{1,40})["']?:\s*(?:\{[^{}]{0,200}?\bdescription["']?:\s*|[a-zA-Z][^,;{}]{0,200}?\.describe\(\s*)` + quoted)
	named = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9]*([_.\-/]?[a-zA-Z0-9]+)*$`)
)

const (
	// afterTool is the maximum distance in bytes between the end of a tool's description and its parameters.
	afterTool = 4000
	maxScript = 1 << 20
)

// readScripts returns an entry for each tool that the JavaScript files of a package define.
func readScripts(dir string) ([]entry, error) {
	var out []entry
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch filepath.Ext(path) {
		case ".js", ".mjs", ".cjs":
		default:
			return nil
		}
		if strings.Contains(path, "node_modules") {
			return nil
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxScript {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		out = append(out, definitions(string(data))...)
		return nil
	})
	return out, err
}

// definitions returns an entry for each tool that a script defines.
func definitions(script string) []entry {
	var out []entry
	all := defined.FindAllStringSubmatchIndex(script, -1)
	for i, m := range all {
		part := func(n int) string {
			if m[2*n] < 0 {
				return ""
			}
			return unquote(script[m[2*n]:m[2*n+1]])
		}
		e := entry{Name: part(1), Text: part(3)}
		if !named.MatchString(e.Name) || strings.Count(e.Text, " ") < 2 {
			continue
		}
		end := min(m[1]+afterTool, len(script))
		if i+1 < len(all) {
			end = min(end, all[i+1][0])
		}
		for _, h := range hinted.FindAllStringSubmatch(script[m[1]:max(end, m[1])], 20) {
			e.Params = append(e.Params, h[1])
			e.Hints = append(e.Hints, unquote(h[2]))
		}
		out = append(out, e)
	}
	return out
}

func unquote(s string) string {
	body := s[1 : len(s)-1]
	if s[0] != '"' {
		body = strings.ReplaceAll(body, `\'`, `'`)
		body = strings.ReplaceAll(body, "\\`", "`")
		body = strings.ReplaceAll(body, `"`, `\"`)
		body = strings.ReplaceAll(body, "\n", `\n`)
	}
	var out string
	if json.Unmarshal([]byte(`"`+body+`"`), &out) != nil {
		return strings.NewReplacer(`\n`, " ", `\"`, `"`, `\\`, `\`).Replace(body)
	}
	return out
}
