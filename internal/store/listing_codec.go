package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

// A listingLine is the first line of a stored listing, in JSON. After its line feed follow the JSON objects exactly
// as the server sent them. They are not part of the line, because encoding/json would format them again. The members
// from Info to Templates contain the length of each of these objects in bytes.
type listingLine struct {
	Server       drawbridge.ServerID             `json:"server"`
	Row          string                          `json:"row"`
	Era          drawbridge.ProtocolEra          `json:"era"`
	Instructions string                          `json:"instructions,omitempty"`
	Hints        map[string]drawbridge.CacheHint `json:"hints,omitempty"`
	At           time.Time                       `json:"at"`

	Info         []int `json:"info,omitempty"`
	Capabilities []int `json:"capabilities,omitempty"`
	Tools        []int `json:"tools,omitempty"`
	Prompts      []int `json:"prompts,omitempty"`
	Resources    []int `json:"resources,omitempty"`
	Templates    []int `json:"templates,omitempty"`
}

var errNotListing = errors.New("it is not a listing")

func encodeListing(l drawbridge.Listing) ([]byte, error) {
	var objects []byte
	put := func(list ...json.RawMessage) []int {
		sizes := make([]int, 0, len(list))
		for _, raw := range list {
			objects = append(objects, raw...)
			sizes = append(sizes, len(raw))
		}
		return sizes
	}
	line := listingLine{
		Server: l.Server, Row: l.ConfigHash, Era: l.Era, Instructions: l.Instructions,
		Hints: l.CacheHints, At: l.ListedAt,
		Info: put(l.Info), Capabilities: put(l.Capabilities),
		Tools: put(l.Tools...), Prompts: put(l.Prompts...), Resources: put(l.Resources...),
		Templates: put(l.Templates...),
	}
	text, err := json.Marshal(line)
	if err != nil {
		return nil, err
	}
	return append(append(text, '\n'), objects...), nil
}

// decodeListing parses the output of encodeListing. The objects of the returned listing share memory with text.
func decodeListing(text []byte) (*drawbridge.Listing, error) {
	first, objects, ok := bytes.Cut(text, []byte{'\n'})
	var line listingLine
	if !ok || json.Unmarshal(first, &line) != nil {
		return nil, errNotListing
	}
	take := func(sizes []int) []json.RawMessage {
		var list []json.RawMessage
		for _, n := range sizes {
			if n < 0 || n > len(objects) {
				ok = false
				return nil
			}
			list = append(list, json.RawMessage(objects[:n:n]))
			objects = objects[n:]
		}
		return list
	}
	one := func(sizes []int) json.RawMessage {
		if list := take(sizes); len(list) == 1 && len(list[0]) > 0 {
			return list[0]
		}
		return nil
	}
	l := &drawbridge.Listing{
		Server: line.Server, ConfigHash: line.Row, Era: line.Era, Instructions: line.Instructions,
		CacheHints: line.Hints, ListedAt: line.At,
		Info: one(line.Info), Capabilities: one(line.Capabilities),
		Tools: take(line.Tools), Prompts: take(line.Prompts), Resources: take(line.Resources),
		Templates: take(line.Templates),
	}
	if !ok || len(objects) > 0 {
		return nil, errNotListing
	}
	return l, nil
}
