package dialect

import "github.com/drawbridge-mcp/drawbridge/config/doc"

// codex keeps its settings as TOML. It puts nothing into texts: what comes from the environment has members of its own.
func codex() Provider {
	toml := &Shape{parse: doc.ParseTOML, rows: at([]string{"mcp_servers"}), tongue: &tongue{
		title: "Codex", text: literal, fields: common(
			field{"env_vars", envVars}, field{"bearer_token_env_var", bearer},
			field{"http_headers", pairs("headers")}, field{"env_http_headers", envHeaders},
			field{"tool_timeout_sec", seconds},
			field{"startup_timeout_sec", left(noStart)}, field{"startup_timeout_ms", left(noStart)},
			field{"enabled_tools", tools}, field{"disabled_tools", left(noDenyList)},
			field{"http_headers_helper", left(noHelper)},
			field{"scopes", auth("scopes")}, field{"oauth_resource", auth("resource")},
			field{"oauth", signIn(field{"client_id", auth("client_id")}, field{"callback_url", callbackURL})},
			field{"required", ignored}, field{"tools", ignored}, field{"default_tools_approval_mode", ignored},
			field{"supports_parallel_tool_calls", ignored},
		),
	}}
	return Provider{Name: "codex", Title: "Codex", Priority: 70, Places: []Place{
		{Root: Project, Path: ".codex/config.toml", Shape: toml},
		{Root: Home, Path: ".codex/config.toml", Variable: "CODEX_HOME", Base: "config.toml", Shape: toml},
	}}
}

// reference is the variable of a name, or nothing where that is no variable's name.
func (c *carrier) reference(line int, name string) (string, bool) {
	if !variable.MatchString(name) {
		c.note(line, "a name in %q is no variable's name, and was left out", c.current)
		return "", false
	}
	return "${" + name + "}", true
}

// envVars carries the names of the variables that a program is given as they are.
func envVars(c *carrier, m doc.Member) {
	for _, item := range m.Value.Items {
		name, ok := item.Word()
		if inner, _ := item.Find("name"); !ok {
			name, _ = inner.Value.Word()
		}
		if value, ok := c.reference(item.Line, name); ok {
			c.pair("env", name, item.Line, value)
		}
	}
}

func bearer(c *carrier, m doc.Member) {
	name, _ := m.Value.Word()
	if value, ok := c.reference(m.Line, name); ok {
		c.pair("headers", "Authorization", m.Line, "Bearer "+value)
	}
}

// envHeaders carries headers whose values are the names of variables.
func envHeaders(c *carrier, m doc.Member) {
	for _, p := range m.Value.Members {
		name, _ := p.Value.Word()
		if value, ok := c.reference(p.Line, name); ok {
			c.pair("headers", p.Name, p.Line, value)
		}
	}
}
