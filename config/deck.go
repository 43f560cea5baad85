package config

import (
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
	"github.com/drawbridge-mcp/drawbridge/internal/launch"
)

// DeckSettings configures Drawbridge's own tools. A profile is a named set of these tools that a client may use. With
// the zero value, clients can use none of these tools.
type DeckSettings struct {
	// Profile is the name or alias of the profile of all clients that Clients does not list; empty means no profile.
	Profile string
	// Clients maps a client to the name of its own profile. The key is the client's declared name in lower case, or the
	// name of its token.
	Clients map[string]string
	// Roots are absolute paths of directories that the tools may use for every client, besides the client's own
	// directories.
	Roots []string
	// Confine restricts the commands that these tools run. The zero value restricts nothing.
	Confine Confinement
	// ConfineProfiles maps the name or alias of a profile to a confinement. For clients with that profile, it replaces
	// Confine.
	ConfineProfiles map[string]Confinement
	// Addons controls whether addons are used; nil means true.
	Addons *bool
	// FetchHosts are hosts that webfetch may reach although their addresses are not public addresses.
	FetchHosts []string
	// Search is the search provider of websearch, one of SearchProviders; empty means no provider. SearchKey is the
	// provider's API key. SearchURL replaces the provider's default address.
	Search    string
	SearchKey SecretRef
	SearchURL string
}

// SearchProviders returns the search providers that the settings accept.
func SearchProviders() []string {
	return []string{"none", "brave", "tavily", "exa", "searxng", "duckduckgo"}
}

// DeckProfiles returns the names and aliases of profiles that the settings accept.
func DeckProfiles() []string {
	return []string{"none", "authoring", "read-only", "survey", "built-in", "all"}
}

// deckSettingTable returns the settings in [deck].
func deckSettingTable() []setting {
	return []setting{
		{"deck", "profile", configfile.JoinOr(DeckProfiles()), "none",
			"which of Drawbridge's own tools clients may call: none; those that only read (authoring or read-only); all built-in tools (survey or built-in); or also the app tools. Tools that write or execute need the scope fs:write or exec too, see docs/tools.md",
			func(r *settingsReader, v configfile.Node) error {
				return readOneOf(&r.settings.Deck.Profile, v, DeckProfiles()...)
			}},
		{"deck", "clients", "table of profiles", "",
			`the profiles of single clients, such as {"claude-code" = "survey"}: by the name that a client on standard input declares, or by the name of a token`,
			func(r *settingsReader, v configfile.Node) error { return readProfiles(&r.settings.Deck.Clients, v) }},
		{"deck", "roots", "list of paths", "[]",
			"directories that these tools may use without approval, besides the one that the client was started in; variables are expanded",
			func(r *settingsReader, v configfile.Node) error { return r.readPaths(&r.settings.Deck.Roots, v) }},
		{"deck", "confine", `"auto", "required", or table`, "",
			"confines the commands of bash and process, as confine of a server's row does",
			func(r *settingsReader, v configfile.Node) (err error) {
				r.settings.Deck.Confine, err = r.readConfinement(v)
				return err
			}},
		{"deck", "confine_profiles", "table of confinements", "",
			`the confinement for clients with a profile, in place of confine, such as {"survey" = "required"}`,
			func(r *settingsReader, v configfile.Node) error { return r.readConfineProfiles(v) }},
		{"deck", "addons", "true or false", "true",
			"whether the addons in the directory addons beside this file, and approved ones of a project, are used",
			func(r *settingsReader, v configfile.Node) error { return readBool(&r.settings.Deck.Addons, v) }},
		{"deck", "fetch_hosts", "list of hosts", "[]",
			"hosts that webfetch may reach although their addresses are not public, such as localhost or wiki.example.internal; addresses of cloud metadata services stay refused",
			func(r *settingsReader, v configfile.Node) error { return readHosts(&r.settings.Deck.FetchHosts, v) }},
		{"deck", "search", configfile.JoinOr(SearchProviders()), "none",
			"where websearch searches; brave, tavily and exa need search_key, searxng needs search_url; duckduckgo needs neither, and may refuse",
			func(r *settingsReader, v configfile.Node) error {
				return readOneOf(&r.settings.Deck.Search, v, SearchProviders()...)
			}},
		{"deck", "search_key", "string", "",
			"the key for the search provider, or a reference to it; see Values",
			func(r *settingsReader, v configfile.Node) error {
				return r.readSecretRef(&r.settings.Deck.SearchKey, v)
			}},
		{"deck", "search_url", "URL", "the provider's own",
			"the address of the search provider; variables are expanded",
			func(r *settingsReader, v configfile.Node) error { return r.readWebURL(&r.settings.Deck.SearchURL, v) }},
	}
}

// readConfinement reads a value of the settings confine and confine_profiles.
func (r *settingsReader) readConfinement(v configfile.Node) (Confinement, error) {
	var missing []string
	c, err := launch.ReadConfinement(v, r.Home, func(s string) string {
		parts, unset := r.splitReferences(s)
		missing = append(missing, unset...)
		text, _ := joinLiteralParts(parts)
		return text
	})
	if err != nil {
		return c, configfile.ErrorAt(v.Line, "deck.confine: %v", err)
	}
	return c, missingVariablesError(missing)
}

// readConfineProfiles reads a table that maps profiles to confinements. Only profiles with tools that run commands are
// accepted.
func (r *settingsReader) readConfineProfiles(v configfile.Node) error {
	if v.Kind != configfile.Table {
		return mustBeError(`a table such as {"survey" = "required"}`)
	}
	all := map[string]Confinement{}
	for _, m := range v.Members {
		if !slices.Contains([]string{"survey", "built-in", "all"}, m.Name) {
			return mustBeError("a table by survey, built-in or all, and %q is none of them", m.Name)
		}
		c, err := r.readConfinement(m.Value)
		if err != nil {
			return err
		}
		all[m.Name] = c
	}
	r.settings.Deck.ConfineProfiles = all
	return nil
}

// readProfiles reads a table that maps names of clients to profiles. The names are stored in lower case.
func readProfiles(to *map[string]string, v configfile.Node) error {
	if v.Kind != configfile.Table {
		return mustBeError(`a table such as {"claude-code" = "survey"}`)
	}
	profiles := map[string]string{}
	for _, m := range v.Members {
		name, ok := m.Value.TextValue()
		if !ok || !slices.Contains(DeckProfiles(), name) {
			return mustBeError("a table of profiles, and the profile of %q one of %s", m.Name,
				configfile.JoinOr(DeckProfiles()))
		}
		profiles[strings.ToLower(strings.TrimSpace(m.Name))] = name
	}
	*to = profiles
	return nil
}

// readHosts reads a list of host names and stores them in lower case.
func readHosts(to *[]string, v configfile.Node) error {
	hosts, ok := v.TextValues()
	if !ok || v.Kind != configfile.List {
		return mustBeError("a list of host names")
	}
	for i, host := range hosts {
		hosts[i] = strings.ToLower(host)
		if host == "" || strings.ContainsAny(host, "/@ *") {
			return mustBeError("a list of host names, without scheme and path; not %q", host)
		}
	}
	*to = hosts
	return nil
}

// readPaths reads a list of paths.
func (r *valueReader) readPaths(to *[]string, v configfile.Node) error {
	if v.Kind != configfile.List {
		return mustBeError("a list of paths")
	}
	paths := make([]string, len(v.Items))
	for i, item := range v.Items {
		if err := r.readPath(&paths[i], item); err != nil {
			return err
		}
	}
	*to = paths
	return nil
}
