package shield

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A LockedTool is one entry of a lockfile: the definition that may be shown for a server's tool, or for an item of
// another Part.
type LockedTool struct {
	Server     drawbridge.ServerID
	Part       string
	Tool       string
	Definition json.RawMessage
}

// lockfileVersion is the version of the lockfile format.
const lockfileVersion = 1

// A lockfileLine is a line of a lockfile, except the first line. Its members are written in this order.
type lockfileLine struct {
	Server     drawbridge.ServerID `json:"server"`
	Part       string              `json:"part,omitempty"`
	Tool       string              `json:"tool"`
	Hash       string              `json:"hash"`
	Definition json.RawMessage     `json:"definition"`
}

// FormatLockfile returns the text of a lockfile: a line with its version, and a line of JSON for each tool, sorted by
// server, part and name. Definitions are in canonical form, so that a line changes only if the meaning of the
// definition changes. Invisible characters are written as code points, so that a reviewer sees them. leftOut contains
// the tools whose definition has no canonical form.
func FormatLockfile(tools []LockedTool) (text []byte, leftOut []LockedTool) {
	tools = slices.SortedFunc(slices.Values(tools), func(a, b LockedTool) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Part, b.Part), cmp.Compare(a.Tool, b.Tool))
	})
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\"drawbridge.lock\":%d}\n", lockfileVersion)
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, t := range tools {
		definition, ok := canonicalDefinition(t.Definition)
		line := lockfileLine{t.Server, t.Part, t.Tool, Fingerprint(t.Definition), escapeInvisible(definition)}
		if !ok || !utf8.ValidString(t.Tool) || enc.Encode(line) != nil {
			leftOut = append(leftOut, t)
		}
	}
	return b.Bytes(), leftOut
}

// escapeInvisible escapes the invisible characters of canonical JSON. They occur only inside JSON strings.
func escapeInvisible(canonical []byte) json.RawMessage {
	if !utf8.Valid(canonical) {
		return canonical
	}
	return safetext.JSON(canonical)
}

// ParseLockfile parses a lockfile; name is its name in error messages. It is strict: a line in another form than that
// of FormatLockfile, a wrong hash, and a repeated tool are errors. Each error begins with name and line number:
// "drawbridge.lock:12: ". The lines may be in any order, so that a merge of two lockfiles is valid.
func ParseLockfile(name string, text []byte) ([]LockedTool, error) {
	wrong := func(n int, format string, args ...any) ([]LockedTool, error) {
		return nil, fmt.Errorf("%s:%d: %w", name, n, fmt.Errorf(format, args...))
	}
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	var head map[string]int
	switch err := json.Unmarshal(first, &head); {
	case err != nil || len(head) != 1 || head["drawbridge.lock"] < 1:
		return wrong(1, `a lockfile begins with {"drawbridge.lock":%d}`, lockfileVersion)
	case head["drawbridge.lock"] > lockfileVersion:
		return wrong(1, "its version is %d, and this Drawbridge reads %d: update Drawbridge", head["drawbridge.lock"],
			lockfileVersion)
	}
	var tools []LockedTool
	lines := map[[3]string]int{}
	for n := 2; len(rest) > 0; n++ {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		l, err := parseLockfileLine(bytes.TrimSuffix(line, []byte("\r")))
		if err != nil {
			return wrong(n, "%w", err)
		}
		id := [3]string{string(l.Server), l.Part, l.Tool}
		if earlier := lines[id]; earlier > 0 {
			return wrong(n, "%s %s is on line %d already", l.Server, safetext.Line(PinLabel(l.Part, l.Tool)), earlier)
		}
		lines[id] = n
		tools = append(tools, l)
	}
	return tools, nil
}

// parseLockfileLine parses one line of a lockfile.
func parseLockfileLine(line []byte) (LockedTool, error) {
	if len(bytes.TrimSpace(line)) == 0 {
		return LockedTool{}, errors.New("the line is empty")
	}
	if bytes.HasPrefix(line, []byte("<<<<<<<")) || bytes.HasPrefix(line, []byte("=======")) ||
		bytes.HasPrefix(line, []byte(">>>>>>>")) {
		return LockedTool{}, errors.New("this is a conflict of an unfinished merge")
	}
	var l lockfileLine
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil {
		return LockedTool{}, fmt.Errorf("not a line of a lockfile: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return LockedTool{}, errors.New("not a line of a lockfile: text follows the object")
	}
	switch {
	case l.Server.Validate() != nil:
		return LockedTool{}, fmt.Errorf("%q is not the name of a server", l.Server)
	case l.Tool == "" || len(l.Definition) == 0:
		return LockedTool{}, errors.New(`"tool" or "definition" is missing`)
	case l.Hash != Fingerprint(l.Definition):
		return LockedTool{}, fmt.Errorf("the hash is not that of the definition, which is %s",
			Fingerprint(l.Definition))
	case !slices.Contains(PinnedParts(), l.Part):
		return LockedTool{}, fmt.Errorf("%q is not a part that is pinned", l.Part)
	case PinnedName(l.Part, l.Definition) != l.Tool:
		return LockedTool{}, errors.New(`the definition is of a tool with another name`)
	}
	return LockedTool{l.Server, l.Part, l.Tool, l.Definition}, nil
}
