package config

import (
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// FlowSettings configures the guard of information flow. The zero value has the defaults.
type FlowSettings struct {
	// Agent is "on" or "off": whether values are judged in calls of Drawbridge's own agent; empty means on.
	Agent string
	// Clients is what is judged in calls of clients: "private", "all" or "off"; empty means private.
	Clients string
	// PrivateFiles are globs of files, and PrivatePages globs of titles or slugs of pages, whose texts are private,
	// besides DefaultPrivateFiles.
	PrivateFiles, PrivatePages []string
	// Endorsement is how long an endorsement holds; 0 means 8 hours.
	Endorsement time.Duration
	// Annotations adds the labels of results to their _meta, for clients that read them; nil means false.
	Annotations *bool
}

// DefaultPrivateFiles returns the globs of files that are private by default.
func DefaultPrivateFiles() []string {
	return []string{".env", ".env.*", ".npmrc", ".pypirc", ".netrc", ".git-credentials", "*.pem", "*.key", "*.p12", "*.pfx", "*.kdbx",
		"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", ".ssh/*", ".aws/credentials", ".docker/config.json", ".kube/config", "credentials.json",
		"secrets.*", ".htpasswd", "terraform.tfstate"}
}

// flowSettingTable returns the settings in [flow].
func flowSettingTable() []setting {
	return []setting{
		{"flow", "agent", `"on" or "off"`, "on",
			"whether values from sources that are not trusted need a person's endorsement in calls of Drawbridge's own agent; see docs/information-flow.md",
			func(r *settingsReader, v configfile.Node) error {
				return readOneOf(&r.settings.Flow.Agent, v, "on", "off")
			}},
		{"flow", "clients", `"private", "all" or "off"`, "private",
			"what is judged in calls of clients: only whether private text is sent, or all values, although what a person types in a client is not known",
			func(r *settingsReader, v configfile.Node) error {
				return readOneOf(&r.settings.Flow.Clients, v, "private", "all", "off")
			}},
		{"flow", "private_files", "list of patterns", "[]",
			"files whose text is private, besides those that usually have secrets, such as .env and *.pem; a pattern is compared with the name, or with as many parts of the path as it has",
			func(r *settingsReader, v configfile.Node) error { return readGlobs(&r.settings.Flow.PrivateFiles, v) }},
		{"flow", "private_pages", "list of patterns", "[]",
			"titles or slugs of pages of the workspace whose text is private",
			func(r *settingsReader, v configfile.Node) error { return readGlobs(&r.settings.Flow.PrivatePages, v) }},
		{"flow", "endorsement", "time", "8h",
			"how long an endorsement of a value holds",
			func(r *settingsReader, v configfile.Node) error {
				return readPositiveDuration(&r.settings.Flow.Endorsement, v)
			}},
		{"flow", "annotations", "true or false", "false",
			"whether the labels of results are in their _meta for clients, as the experimental extension io.modelcontextprotocol/trust-annotations has them",
			func(r *settingsReader, v configfile.Node) error { return readBool(&r.settings.Flow.Annotations, v) }},
	}
}

// readGlobs reads a list of patterns.
func readGlobs(to *[]string, v configfile.Node) error {
	globs, ok := v.TextValues()
	if !ok || slices.ContainsFunc(globs, func(glob string) bool { _, err := path.Match(glob, ""); return err != nil }) {
		return fmt.Errorf("must be a list of patterns")
	}
	*to = globs
	return nil
}
