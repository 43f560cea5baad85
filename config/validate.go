package config

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// transportTypes maps each valid value of a row's member type to the name of the transport.
var transportTypes = map[string]string{
	"stdio":           "stdio",
	"local":           "stdio",
	"http":            "http",
	"streamable-http": "http",
	"streamableHttp":  "http",
	"streamable_http": "http",
	"remote":          "http",
	"sse":             "sse",
}

// invalidReason returns why the row cannot be mounted, or "". It does not check the name, which the caller has
// validated.
func (s *Server) invalidReason() string {
	complain := func(format string, args ...any) string {
		return fmt.Sprintf("Server %q: ", s.ID) + fmt.Sprintf(format, args...)
	}
	if s.Command != "" && s.URL != "" {
		return complain(
			`both "command" and "url" are set - server should be either stdio (command) OR http/sse (url), not both`)
	}
	if why := s.invalidAuthReason(); why != "" {
		return complain("%s", why)
	}
	if s.Type == "stdio" {
		if s.Command == "" {
			return complain(`stdio server requires "command" field`)
		}
		if why := s.launchSpec().Refusal(s.Cwd); why != "" {
			return complain("%s", why)
		}
		return ""
	}
	if s.Confine.Level == ConfineRequired {
		return complain(`"confine" is for programs that are started here: what is behind a url cannot be confined`)
	}
	if s.URL == "" {
		return complain(`%s server requires "url" field`, s.Type)
	}
	if why := s.invalidRemoteReason(); why != "" {
		return complain("%s", why)
	}
	return ""
}

func (s *Server) invalidRemoteReason() string {
	u, err := url.Parse(s.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return s.withUnsetVariables(`"url" must be an http or https URL with a host`)
	}
	for _, p := range s.Headers {
		switch {
		case p.Name == "" || strings.Trim(p.Name, headerNameChars) != "":
			return fmt.Sprintf(`"headers" has %q, which is not a header name`, p.Name)
		case strings.ContainsFunc(p.Value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			return fmt.Sprintf("header %q has a line break or another control character in its value", p.Name)
		}
	}
	return ""
}

func (s *Server) invalidAuthReason() string {
	if s.Auth == nil {
		return ""
	}
	if why := s.Auth.invalidReason(); why != "" {
		return s.withUnsetVariables(why)
	}
	member, name := s.KeyTarget()
	switch {
	case s.Auth.Header != "" && member != "header":
		return `"header" in "auth" is for the type "apikey" with a "credential_id", at a "url"`
	case s.Auth.Variable != "" && member != "env":
		return `"variable" in "auth" is for the type "apikey" with a "credential_id", and a "command"`
	case member == "env" && name == "":
		return `"auth" of the type "apikey" with a "credential_id" needs "variable": the environment variable for the key`
	case member == "header" && strings.Trim(name, headerNameChars) != "":
		return fmt.Sprintf(`"header" in "auth" is %q, which is not a header name`, name)
	}
	return ""
}

// KeyTarget returns how the stored API key of the row is sent. member is "header" or "env"; name is the name of the
// header or of the environment variable. For a row without a stored API key, both are "".
func (s *Server) KeyTarget() (member, name string) {
	switch {
	case s.Auth == nil || s.Auth.Type != "apikey" || s.Auth.CredentialID == "":
		return "", ""
	case s.URL == "":
		return "env", s.Auth.Variable
	}
	return "header", cmp.Or(s.Auth.Header, "Authorization")
}

// withUnsetVariables appends the names of the unset variables to a reason, since they may be the cause.
func (s *Server) withUnsetVariables(why string) string {
	if len(s.Unresolved) > 0 {
		why += fmt.Sprintf(" (not set: %s)", configfile.JoinFew(s.Unresolved))
	}
	return why
}

// headerNameChars are the characters allowed in a header's name (RFC 9110, 5.6.2).
const headerNameChars = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
