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

// A Locked is one tool of a lockfile, or what else its Part says: the definition that its server may show.
type Locked struct {
	Server     drawbridge.ServerID
	Part       string
	Tool       string
	Definition json.RawMessage
}

// lockVersion is the version of the lockfile that is written and read.
const lockVersion = 1

// lockLine is a line of a lockfile but the first, in the order in which its members are written.
type lockLine struct {
	Server     drawbridge.ServerID `json:"server"`
	Part       string              `json:"part,omitempty"`
	Tool       string              `json:"tool"`
	Hash       string              `json:"hash"`
	Definition json.RawMessage     `json:"definition"`
}

// LockText writes a lockfile: a line that says its version, and a line of JSON for each tool, by servers and names, whatever
// order they come in. Definitions are in their canonical form, so that a line differs only where the definition does, and a
// character that cannot be seen is written as its code point, so that a reviewer sees it. What has no canonical form is left out.
func LockText(tools []Locked) (text []byte, leftOut []Locked) {
	tools = slices.SortedFunc(slices.Values(tools), func(a, b Locked) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Part, b.Part), cmp.Compare(a.Tool, b.Tool))
	})
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\"drawbridge.lock\":%d}\n", lockVersion)
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, t := range tools {
		definition, ok := canonical(t.Definition)
		line := lockLine{t.Server, t.Part, t.Tool, Fingerprint(t.Definition), escaped(definition)}
		if !ok || !utf8.ValidString(t.Tool) || enc.Encode(line) != nil {
			leftOut = append(leftOut, t)
		}
	}
	return b.Bytes(), leftOut
}

// escaped writes the characters of canonical JSON that cannot be seen as their code points. They stand in texts only.
func escaped(canonical []byte) json.RawMessage {
	if !utf8.Valid(canonical) {
		return canonical
	}
	return safetext.JSON(canonical)
}

// ReadLock reads a lockfile whose name is for errors. It is strict: a line that is not as LockText writes it, a hash that is
// not the definition's, and a tool that is there twice are errors, which begin with the name and the line, as
// "drawbridge.lock:12: ". The lines may be in any order, so that a merge of two is one.
func ReadLock(name string, text []byte) ([]Locked, error) {
	wrong := func(n int, format string, args ...any) ([]Locked, error) {
		return nil, fmt.Errorf("%s:%d: %w", name, n, fmt.Errorf(format, args...))
	}
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	var head map[string]int
	switch err := json.Unmarshal(first, &head); {
	case err != nil || len(head) != 1 || head["drawbridge.lock"] < 1:
		return wrong(1, `it does not begin as a lockfile does: {"drawbridge.lock":%d}`, lockVersion)
	case head["drawbridge.lock"] > lockVersion:
		return wrong(1, "its version is %d, and this Drawbridge reads %d: update Drawbridge", head["drawbridge.lock"], lockVersion)
	}
	var tools []Locked
	lines := map[[3]string]int{}
	for n := 2; len(rest) > 0; n++ {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		l, err := readLine(bytes.TrimSuffix(line, []byte("\r")))
		if err != nil {
			return wrong(n, "%w", err)
		}
		id := [3]string{string(l.Server), l.Part, l.Tool}
		if earlier := lines[id]; earlier > 0 {
			return wrong(n, "%s %s is on line %d already", l.Server, safetext.Line(PartLabel(l.Part, l.Tool)), earlier)
		}
		lines[id] = n
		tools = append(tools, l)
	}
	return tools, nil
}

// readLine reads a line of a lockfile.
func readLine(line []byte) (Locked, error) {
	if len(bytes.TrimSpace(line)) == 0 {
		return Locked{}, errors.New("the line is empty")
	}
	if bytes.HasPrefix(line, []byte("<<<<<<<")) || bytes.HasPrefix(line, []byte("=======")) || bytes.HasPrefix(line, []byte(">>>>>>>")) {
		return Locked{}, errors.New("a merge was not finished here")
	}
	var l lockLine
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil {
		return Locked{}, fmt.Errorf("no line of a lockfile: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Locked{}, errors.New("no line of a lockfile: something follows the object")
	}
	switch {
	case l.Server.Valid() != nil:
		return Locked{}, fmt.Errorf("%q is no name of a server", l.Server)
	case l.Tool == "" || len(l.Definition) == 0:
		return Locked{}, errors.New(`"tool" or "definition" is missing`)
	case l.Hash != Fingerprint(l.Definition):
		return Locked{}, fmt.Errorf("the hash is not that of the definition, which is %s", Fingerprint(l.Definition))
	case !slices.Contains(Parts(), l.Part):
		return Locked{}, fmt.Errorf("%q is no part of what servers say that is pinned", l.Part)
	case PartName(l.Part, l.Definition) != l.Tool:
		return Locked{}, errors.New(`the definition is of a tool with another name`)
	}
	return Locked{l.Server, l.Part, l.Tool, l.Definition}, nil
}
