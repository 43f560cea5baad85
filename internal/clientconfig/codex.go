package clientconfig

import (
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// codexProvider returns the provider for Codex, whose files are in TOML. Codex does not expand variables in strings.
// Instead, separate members contain the names of variables.
func codexProvider() Provider {
	toml := &Dialect{parse: configfile.ParseTOML, findRows: rowsAtPaths([]string{"mcp_servers"}), grammar: &rowGrammar{
		title: "Codex", convertText: literalText, fields: commonMembers(
			memberRule{"env_vars", convertEnvNames}, memberRule{"bearer_token_env_var", convertBearerVariable},
			memberRule{"http_headers", convertPairs("headers")}, memberRule{"env_http_headers", convertEnvHeaders},
			memberRule{"tool_timeout_sec", convertSecondsTimeout},
			memberRule{"startup_timeout_sec", leaveOut(adviceStartTimeout)}, memberRule{"startup_timeout_ms",
				leaveOut(adviceStartTimeout)},
			memberRule{"enabled_tools", convertTools}, memberRule{"disabled_tools", leaveOut(adviceDenyList)},
			memberRule{"http_headers_helper", leaveOut(adviceHeaderCommand)},
			memberRule{"scopes", copyAuthAs("scopes")}, memberRule{"oauth_resource", copyAuthAs("resource")},
			memberRule{"oauth", convertAuth(memberRule{"client_id", copyAuthAs("client_id")}, memberRule{"callback_url",
				convertCallbackURL})},
			memberRule{"required", ignoreMember}, memberRule{"tools", ignoreMember},
			memberRule{"default_tools_approval_mode", ignoreMember},
			memberRule{"supports_parallel_tool_calls", ignoreMember},
		),
	}}
	return Provider{Name: "codex", Title: "Codex", Priority: 70, Locations: []FileLocation{
		{Root: ProjectRoot, Path: ".codex/config.toml", Shape: toml},
		{Root: HomeRoot, Path: ".codex/config.toml", Variable: "CODEX_HOME",
			FileInVariable: "config.toml", Shape: toml},
	}}
}

// variableReference returns "${NAME}" for the name of a variable. If the name is not valid, it adds a note about the
// given line and returns false.
func (c *rowConverter) variableReference(line int, name string) (string, bool) {
	if !variablePattern().MatchString(name) {
		c.addNote(line, "a name in %q is not a valid variable name and was left out", c.current)
		return "", false
	}
	return "${" + name + "}", true
}

// convertEnvNames converts a list of variable names to members of env. The variables are passed to the program
// unchanged.
func convertEnvNames(c *rowConverter, m configfile.Member) {
	for _, item := range m.Value.Items {
		name, ok := item.TextValue()
		if inner, _ := item.Find("name"); !ok {
			name, _ = inner.Value.TextValue()
		}
		if value, ok := c.variableReference(item.Line, name); ok {
			c.addPair("env", name, item.Line, value)
		}
	}
}

func convertBearerVariable(c *rowConverter, m configfile.Member) {
	name, _ := m.Value.TextValue()
	if value, ok := c.variableReference(m.Line, name); ok {
		c.addPair("headers", "Authorization", m.Line, "Bearer "+value)
	}
}

// convertEnvHeaders converts headers whose values are names of environment variables.
func convertEnvHeaders(c *rowConverter, m configfile.Member) {
	for _, p := range m.Value.Members {
		name, _ := p.Value.TextValue()
		if value, ok := c.variableReference(p.Line, name); ok {
			c.addPair("headers", p.Name, p.Line, value)
		}
	}
}
