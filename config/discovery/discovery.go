// Package discovery reads how cards are found, as a person writes it.
package discovery

import (
	"errors"
	"fmt"
	"path"
	"strconv"

	"github.com/drawbridge-mcp/drawbridge/config/doc"
)

// Discovery says how cards are found. A zero field means the default.
type Discovery struct {
	// Enabled false has nothing found: all cards are listed, and models of our own are shown all; nil means the default.
	Enabled *bool
	// Mode is what outside clients are listed: "direct", "auto" or "search".
	Mode string
	// TopK is the most cards that a question brings; below 0 any number.
	TopK int
	// MinScore is the least cosine between a question and a card that is found; below 0 any. RelativeScore is the least share of
	// the best card's score; below 0 any.
	MinScore, RelativeScore float64
	// AlwaysInclude are globs over names of cards that are always listed.
	AlwaysInclude []string
	// SearchAbove is how many tokens the definitions may have, those of AlwaysInclude aside, before the mode auto searches.
	SearchAbove int
	// ForwardOutputSchema tells models of our own what tools answer; nil means the default. OutputSchemaHintBytes is how much of it.
	ForwardOutputSchema   *bool
	OutputSchemaHintBytes int
}

// A Member is one setting: the table that it stands in, what it is for people, and how it is read.
type Member struct {
	Section, Name, Type, Default, Doc string
	// Read puts the value in. The error says what the value must be.
	Read func(d *Discovery, v doc.Node) error
}

const table = "mcp.tool_discovery"

// Members is the list of what may be set, in the order in which it is explained.
func Members() []Member {
	return []Member{
		{table, "enabled", "boolean", "true",
			"false lists all cards to everybody, whatever the mode, and finds none",
			func(d *Discovery, v doc.Node) error { return flag(&d.Enabled, v) }},
		{table, "mode", `"direct", "auto" or "search"`, "direct",
			"what outside clients are listed: all cards; or find_tools, call_tool and the cards of always_include; auto is search for who has more than search_above, and else direct",
			func(d *Discovery, v doc.Node) error { return mode(&d.Mode, v) }},
		{table, "search_above", "tokens", "8000",
			"how many tokens the definitions of a caller's cards may have before auto searches, those of always_include aside",
			func(d *Discovery, v doc.Node) error { return whole(&d.SearchAbove, v) }},
		{table, "always_include", "list of names, with * and ?", "[]",
			"cards that are always listed, by the names that they are listed by",
			func(d *Discovery, v doc.Node) error { return globs(&d.AlwaysInclude, v) }},
		{table, "top_k", "whole number, or 0 for all", "20",
			"the most cards that a question brings; find_tools shows the first of them in full",
			func(d *Discovery, v doc.Node) error { return wholeOrNone(&d.TopK, v) }},
		{table, "relative_score", "number from 0 to 1", "0.25",
			"leaves out cards whose score is under this share of the best one's; the best stays",
			func(d *Discovery, v doc.Node) error { return share(&d.RelativeScore, v) }},
		{table, "min_score", "number from 0 to 1", "0",
			"leaves out cards whose cosine to the question is under this, where a model embeds both; the best stays",
			func(d *Discovery, v doc.Node) error { return share(&d.MinScore, v) }},
		{"mcp", "forward_output_schema", "boolean", "false",
			"tells models of our own in a tool's description what it answers, by its output schema",
			func(d *Discovery, v doc.Node) error { return flag(&d.ForwardOutputSchema, v) }},
		{"mcp", "output_schema_hint_bytes", "bytes", "1024",
			"the most bytes of an output schema that are told",
			func(d *Discovery, v doc.Node) error { return whole(&d.OutputSchemaHintBytes, v) }},
	}
}

func flag(to **bool, v doc.Node) error {
	b, ok := v.Flag()
	if !ok {
		return errors.New("must be true or false")
	}
	*to = &b
	return nil
}

func mode(to *string, v doc.Node) error {
	switch s, _ := v.Word(); s {
	case "direct", "auto", "search":
		*to = s
		return nil
	}
	return errors.New(`must be "direct", "auto" or "search"`)
}

func whole(to *int, v doc.Node) error {
	n, ok := v.Count()
	if !ok {
		return errors.New("must be a whole number above 0")
	}
	*to = n
	return nil
}

// wholeOrNone reads a whole number; 0, which a field cannot hold, is -1.
func wholeOrNone(to *int, v doc.Node) error {
	if v.Kind == doc.Number && v.Text == "0" {
		*to = -1
		return nil
	}
	if whole(to, v) != nil {
		return errors.New("must be a whole number")
	}
	return nil
}

// share reads a number from 0 to 1; 0, which a field cannot hold, is -1.
func share(to *float64, v doc.Node) error {
	f, err := strconv.ParseFloat(v.Text, 64)
	if v.Kind != doc.Number || err != nil || !(f >= 0 && f <= 1) {
		return errors.New("must be a number from 0 to 1")
	}
	if *to = f; f == 0 {
		*to = -1
	}
	return nil
}

func globs(to *[]string, v doc.Node) error {
	words, ok := v.Words()
	if !ok || v.Kind != doc.List {
		return errors.New(`must be a list of names, such as ["github__*"]`)
	}
	for _, glob := range words {
		if _, err := path.Match(glob, ""); err != nil || glob == "" {
			return fmt.Errorf("has %q, which is no name with * and ?", glob)
		}
	}
	*to = words
	return nil
}
