package config

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// ToolDiscovery configures the search for tools. With the search, a client does not receive all tools; it finds tools
// by asking a question. A zero field means the default.
type ToolDiscovery struct {
	// Enabled controls whether the search is on; nil means the default. If it is false, clients and the models that
	// Drawbridge runs receive all tools.
	Enabled *bool
	// Mode decides which tools are in the lists for external clients. "direct" lists all tools. "search" lists
	// find_tools, call_tool and the tools in AlwaysInclude. "auto" is "search" for callers above SearchAbove, and
	// otherwise "direct".
	Mode string
	// TopK is the maximum number of tools found for a question. A negative value means no limit, and turns the search
	// off.
	TopK int
	// MinScore is the minimum cosine similarity between a question and a tool. RelativeScore is the minimum score of a
	// tool as a share of the best tool's score. Tools below a minimum are left out, except the best tool. A negative
	// value means no minimum.
	MinScore, RelativeScore float64
	// AlwaysInclude are globs. Tools whose listed name matches one of them are always listed.
	AlwaysInclude []string
	// Direct are names of clients that get the list of all tools in every mode: the name that a client declares, in any
	// letter case, or the name of its token.
	Direct []string
	// SearchAbove is a number of tokens. If the definitions of a caller's tools have more tokens, "auto" is "search"
	// for this caller. Tools in AlwaysInclude are not counted.
	SearchAbove int
	// ForwardOutputSchema adds the output schemas of tools to their descriptions, for models that Drawbridge runs; nil
	// means the default. The schemas may be large:
	// OutputSchemaHintBytes limits their size.
	ForwardOutputSchema   *bool
	OutputSchemaHintBytes int
}

// A discoverySetting describes one setting: its table, its documentation and the function that reads it.
type discoverySetting struct {
	Section, Name, Type, Default, Doc string
	// Read stores the value in d. The error describes which values are valid.
	Read func(d *ToolDiscovery, v configfile.Node) error
}

const discoveryTable = "mcp.tool_discovery"

// discoveryMembers returns the settings in the order of the documentation.
func discoveryMembers() []discoverySetting {
	return []discoverySetting{
		{discoveryTable, "enabled", "boolean", "true",
			"false lists all tools in every mode, and turns the search off",
			func(d *ToolDiscovery, v configfile.Node) error { return readDiscoveryFlag(&d.Enabled, v) }},
		{discoveryTable, "mode", `"direct", "auto", "search" or "code"`, "direct",
			"the list for external clients: direct has all tools; search has find_tools, call_tool and the tools of always_include; auto is search for callers above search_above, else direct; code has search_tools, describe_tools, run_python and the tools of always_include",
			func(d *ToolDiscovery, v configfile.Node) error { return readDiscoveryMode(&d.Mode, v) }},
		{discoveryTable, "search_above", "tokens", "8000",
			"auto is search if a caller's definitions have more tokens than this; the tools of always_include are not counted",
			func(d *ToolDiscovery, v configfile.Node) error { return readDiscoveryInt(&d.SearchAbove, v) }},
		{discoveryTable, "always_include", "list of names, with * and ?", "[]",
			"tools that are always listed, by their listed names",
			func(d *ToolDiscovery, v configfile.Node) error { return readCardGlobs(&d.AlwaysInclude, v) }},
		{discoveryTable, "direct", "list of names", "[]",
			"clients that get the list of all tools in every mode, by the name that they declare or the name of their token",
			func(d *ToolDiscovery, v configfile.Node) error { return readClientNames(&d.Direct, v) }},
		{discoveryTable, "top_k", "whole number", "20",
			"the maximum number of tools found for a question; find_tools shows the first of them in full; 0 lists all tools and turns the search off, as enabled = false does",
			func(d *ToolDiscovery, v configfile.Node) error { return readDiscoveryIntOrZero(&d.TopK, v) }},
		{discoveryTable, "relative_score", "number from 0 to 1", "0.25",
			"leaves out tools whose score is below this share of the best score; the best tool stays",
			func(d *ToolDiscovery, v configfile.Node) error { return readDiscoveryFraction(&d.RelativeScore, v) }},
		{discoveryTable, "min_score", "number from 0 to 1", "0",
			"leaves out tools whose cosine similarity to the question is below this, with an embedding model; the best tool stays",
			func(d *ToolDiscovery, v configfile.Node) error { return readDiscoveryFraction(&d.MinScore, v) }},
		{"mcp", "forward_output_schema", "boolean", "false",
			"adds the output schema to a tool's description, for models that Drawbridge runs",
			func(d *ToolDiscovery, v configfile.Node) error { return readDiscoveryFlag(&d.ForwardOutputSchema, v) }},
		{"mcp", "output_schema_hint_bytes", "bytes", "1024",
			"the maximum number of bytes of an output schema in a description",
			func(d *ToolDiscovery, v configfile.Node) error { return readDiscoveryInt(&d.OutputSchemaHintBytes, v) }},
	}
}

func readDiscoveryFlag(to **bool, v configfile.Node) error {
	b, ok := v.Bool()
	if !ok {
		return errors.New("must be true or false")
	}
	*to = &b
	return nil
}

func readDiscoveryMode(to *string, v configfile.Node) error {
	switch s, _ := v.TextValue(); s {
	case "direct", "auto", "search", "code":
		*to = s
		return nil
	}
	return errors.New(`must be "direct", "auto", "search" or "code"`)
}

func readDiscoveryInt(to *int, v configfile.Node) error {
	n, ok := v.PositiveInt()
	if !ok {
		return errors.New("must be a whole number above 0")
	}
	*to = n
	return nil
}

// readDiscoveryIntOrZero reads a whole number. It stores 0 as -1, because 0 in a field means the default.
func readDiscoveryIntOrZero(to *int, v configfile.Node) error {
	if v.Kind == configfile.Number && v.Text == "0" {
		*to = -1
		return nil
	}
	if readDiscoveryInt(to, v) != nil {
		return errors.New("must be a whole number")
	}
	return nil
}

// readDiscoveryFraction reads a number from 0 to 1. It stores 0 as -1, because 0 in a field means the default.
func readDiscoveryFraction(to *float64, v configfile.Node) error {
	f, err := strconv.ParseFloat(v.Text, 64)
	if v.Kind != configfile.Number || err != nil || !(f >= 0 && f <= 1) {
		return errors.New("must be a number from 0 to 1")
	}
	if *to = f; f == 0 {
		*to = -1
	}
	return nil
}

func readClientNames(to *[]string, v configfile.Node) error {
	names, ok := v.TextValues()
	if !ok || v.Kind != configfile.List || slices.Contains(names, "") {
		return errors.New(`must be a list of names of clients, such as ["claude-ai"]`)
	}
	*to = names
	return nil
}

func readCardGlobs(to *[]string, v configfile.Node) error {
	words, ok := v.TextValues()
	if !ok || v.Kind != configfile.List {
		return errors.New(`must be a list of names, such as ["github__*"]`)
	}
	for _, glob := range words {
		if _, err := path.Match(glob, ""); err != nil || glob == "" {
			return fmt.Errorf("has %q, which is not a name with * and ?", glob)
		}
	}
	*to = words
	return nil
}
