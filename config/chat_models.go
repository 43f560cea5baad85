package config

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// AgentSettings configures Drawbridge's own agent. The zero value chooses the model of the first provider that has a key.
type AgentSettings struct {
	// Model is the language model, as "provider/name" or as the name at the only provider that lists it. FallbackModel
	// answers if Model does not.
	Model, FallbackModel string
	// Thinking is how much the model thinks before it answers; empty means the provider's default.
	Thinking drawbridge.ThinkingLevel
}

// A ModelProvider configures a provider of language models. The zero value of a field means the default of the built-in
// provider with that name, or of the kind.
type ModelProvider struct {
	// Name is the name of the provider in "provider/name".
	Name string
	// Kind is the API, one of ModelProviderKinds. BaseURL is the address of the API.
	Kind, BaseURL string
	Key           SecretRef
	// Headers are further headers of each request.
	Headers []SecretHeader
	// DefaultModel is the model that is used if only the provider is named, or if nothing is.
	DefaultModel string
	// Timeout is how long a request waits for each next part of the answer.
	Timeout time.Duration
	// ToolSearch reports whether the provider's own search for tools is used; nil means where it is known to exist.
	ToolSearch *bool
	// Models describes models whose facts the provider does not tell.
	Models []ModelFacts
}

// A SecretHeader is a header whose value may be a secret.
type SecretHeader struct {
	Name  string
	Value SecretRef
}

// ModelFacts are facts about one model. A zero field is not set.
type ModelFacts struct {
	// Name is the name of the model at its provider.
	Name string
	// Window is the maximum number of tokens of request and answer. MaxOutput is the maximum number of tokens of the
	// answer.
	Window, MaxOutput int
	// Images reports whether the model accepts images, and Thinking whether it thinks; nil means that it is not known.
	Images, Thinking *bool
	Price            drawbridge.ModelPrice
}

// ModelProviderKinds returns the kinds of providers that the settings accept.
func ModelProviderKinds() []string { return []string{"anthropic", "openai", "openai-chat", "gemini"} }

// The tables of drawbridge.toml that configure providers of language models. The names in capitals stand for any name.
const (
	providersTable = "models.providers"
	providerTable  = providersTable + ".NAME"
	factsTable     = providerTable + ".models.MODEL"
)

// agentSettingTable returns the settings in [agent].
func agentSettingTable() []setting {
	return []setting{
		{"agent", "model", "string", "the default model of the first provider with a key",
			`the model of Drawbridge's own agent: "provider/name", or a name that one provider lists; see docs/models.md`,
			func(r *settingsReader, v configfile.Node) error { return r.readText(&r.settings.Agent.Model, v) }},
		{"agent", "fallback_model", "string", "",
			"the model that answers if the first one does not: after the last retry, or without a valid key",
			func(r *settingsReader, v configfile.Node) error {
				return r.readText(&r.settings.Agent.FallbackModel, v)
			}},
		{"agent", "thinking", configfile.JoinOr(thinkingLevels()), "the provider's own",
			"how much the model thinks before it answers; each provider uses its nearest step",
			func(r *settingsReader, v configfile.Node) error {
				return readOneOf((*string)(&r.settings.Agent.Thinking), v, thinkingLevels()...)
			}},
	}
}

func thinkingLevels() (all []string) {
	for _, level := range drawbridge.ThinkingLevels() {
		all = append(all, string(level))
	}
	return all
}

// providerSettingTable returns the settings of one provider. They are read into r.provider.
func providerSettingTable() []setting {
	return []setting{
		{providerTable, "kind", configfile.JoinOr(ModelProviderKinds()), "that of the built-in provider, else openai-chat",
			"the API: openai is OpenAI's Responses, openai-chat is Chat Completions, which vLLM, llama.cpp and most others have",
			func(r *settingsReader, v configfile.Node) error {
				return readOneOf(&r.provider.Kind, v, ModelProviderKinds()...)
			}},
		{providerTable, "base_url", "URL", "the provider's own",
			"the address of the API; variables are expanded",
			func(r *settingsReader, v configfile.Node) error { return r.readWebURL(&r.provider.BaseURL, v) }},
		{providerTable, "api_key", "string", "the built-in provider's variable, or the stored secret of that name",
			"the key, or a reference to it; see Values",
			func(r *settingsReader, v configfile.Node) error { return r.readSecretRef(&r.provider.Key, v) }},
		{providerTable, "headers", "table of strings", "",
			"further headers of each request; values may be references, see Values",
			func(r *settingsReader, v configfile.Node) error { return r.readSecretHeaders(&r.provider.Headers, v) }},
		{providerTable, "default_model", "string", "a model that the provider lists",
			"the model that is used where only the provider is named, or nothing is",
			func(r *settingsReader, v configfile.Node) error { return r.readText(&r.provider.DefaultModel, v) }},
		{providerTable, "timeout", "time", "5m for the first part, 2m for each next one",
			"how long a request waits for the next part of an answer",
			func(r *settingsReader, v configfile.Node) error { return readPositiveDuration(&r.provider.Timeout, v) }},
		{providerTable, "tool_search", "boolean", "true for models that are known to have it, at the provider's own address",
			"whether the kinds anthropic and openai use the provider's own search for tools; false: find_tools only",
			func(r *settingsReader, v configfile.Node) error { return readBool(&r.provider.ToolSearch, v) }},
		{providerTable, "models", "table of tables", "what the provider tells",
			`facts about single models, by name, such as [models.providers.local.models."qwen3:32b"]`,
			func(r *settingsReader, v configfile.Node) error { return r.readModelFacts(v) }},
	}
}

// factsSettingTable returns the settings of one model. They are read into r.facts.
func factsSettingTable() []setting {
	price := func(name, what string, to func(*drawbridge.ModelPrice) *float64) setting {
		return setting{factsTable, name, "US dollars", "", what, func(r *settingsReader, v configfile.Node) error {
			return readPrice(to(&r.facts.Price), v)
		}}
	}
	return []setting{
		{factsTable, "window", "tokens", "what the provider tells",
			"the tokens that the conversation and the answer may have together",
			func(r *settingsReader, v configfile.Node) error { return readPositiveInt(&r.facts.Window, v) }},
		{factsTable, "max_output", "tokens", "what the provider tells",
			"the greatest number of tokens of an answer",
			func(r *settingsReader, v configfile.Node) error { return readPositiveInt(&r.facts.MaxOutput, v) }},
		{factsTable, "images", "boolean", "what the provider tells, else true",
			"whether the model accepts images",
			func(r *settingsReader, v configfile.Node) error { return readBool(&r.facts.Images, v) }},
		{factsTable, "thinks", "boolean", "what the provider tells, else by the name",
			"whether the model can think before it answers",
			func(r *settingsReader, v configfile.Node) error { return readBool(&r.facts.Thinking, v) }},
		price("price_input", "the price of a million tokens of input",
			func(p *drawbridge.ModelPrice) *float64 { return &p.Input }),
		price("price_output", "the price of a million tokens of output",
			func(p *drawbridge.ModelPrice) *float64 { return &p.Output }),
		price("price_cache_read", "the price of a million tokens that are read from the cache; otherwise that of input",
			func(p *drawbridge.ModelPrice) *float64 { return &p.CacheRead }),
		price("price_cache_write", "the price of a million tokens that are written to the cache; otherwise that of input",
			func(p *drawbridge.ModelPrice) *float64 { return &p.CacheWrite }),
	}
}

// readModelProviders reads the table [models.providers]. The error joins a *configfile.Error for each mistake.
func (r *settingsReader) readModelProviders(section configfile.Member) error {
	return r.readNamedTables(section, providersTable, func(m configfile.Member) error {
		if err := checkProviderName(m.Name); err != nil {
			return configfile.ErrorAt(m.Line, "%s.%s: the name %s", providersTable, m.Name, err)
		}
		r.provider = &ModelProvider{Name: m.Name}
		err := r.readMembers(providerSettingTable(), providersTable+"."+m.Name, m.Value)
		r.settings.Providers = append(r.settings.Providers, *r.provider)
		return err
	})
}

// checkProviderName checks a name that stands before the slash in "provider/name".
func checkProviderName(name string) error {
	allowed := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.'
	}
	if name == "" || len(name) > 64 || strings.ContainsFunc(name, func(c rune) bool { return !allowed(c) }) {
		return mustBeError("1 to 64 of the characters a-z, 0-9, -, _ and .")
	}
	return nil
}

func (r *settingsReader) readModelFacts(v configfile.Node) error {
	name := providersTable + "." + r.provider.Name + ".models"
	return r.readNamedTables(configfile.Member{Name: name, Line: v.Line, Value: v}, name, func(m configfile.Member) error {
		r.facts = &ModelFacts{Name: m.Name}
		err := r.readMembers(factsSettingTable(), name+"."+strconv.Quote(m.Name), m.Value)
		r.provider.Models = append(r.provider.Models, *r.facts)
		return err
	})
}

// readNamedTables calls read for each table in section.
func (r *settingsReader) readNamedTables(section configfile.Member, name string,
	read func(configfile.Member) error) error {
	if section.Value.Kind != configfile.Table {
		return configfile.ErrorAt(section.Line, "%q must be a table", name)
	}
	var errs []error
	for _, m := range section.Value.Members {
		if m.Value.Kind != configfile.Table {
			errs = append(errs, configfile.ErrorAt(m.Line, "%q must be a table", name+"."+m.Name))
			continue
		}
		errs = append(errs, read(m))
	}
	return errors.Join(errs...)
}

// readMembers reads the members of a table with the given settings. name is the name of the table for messages.
func (r *settingsReader) readMembers(known []setting, name string, table configfile.Node) error {
	var errs []error
	for _, m := range table.Members {
		i := slices.IndexFunc(known, func(s setting) bool { return s.name == m.Name })
		if i < 0 {
			var names []string
			for _, s := range known {
				names = append(names, s.name)
			}
			r.reportUnknownSetting(m, name+".", names)
			continue
		}
		errs = append(errs, mistakeAt(m, name+"."+m.Name, known[i].readValue(r, m.Value)))
	}
	return errors.Join(errs...)
}

// readSecretHeaders reads a table of headers.
func (r *valueReader) readSecretHeaders(to *[]SecretHeader, v configfile.Node) error {
	if v.Kind != configfile.Table {
		return mustBeError("a table of strings")
	}
	var all []SecretHeader
	for _, m := range v.Members {
		h := SecretHeader{Name: m.Name}
		if !isHeaderName(m.Name) {
			return mustBeError("a table of strings by names of headers; %q is not a name of a header", m.Name)
		}
		if err := r.readSecretRef(&h.Value, m.Value); err != nil {
			return mustBeError("a table of strings that are not empty")
		}
		all = append(all, h)
	}
	*to = all
	return nil
}

// isHeaderName reports whether a name is a token of RFC 9110, 5.6.2, and not a header that the connection needs.
func isHeaderName(name string) bool {
	reserved := []string{"host", "content-length", "content-type", "connection", "transfer-encoding", "accept", "trailer",
		"upgrade", "te", "accept-encoding"}
	return name != "" && !slices.Contains(reserved, strings.ToLower(name)) &&
		!strings.ContainsFunc(name, func(c rune) bool {
			return c <= ' ' || c >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
		})
}

// readPrice reads a number of US dollars.
func readPrice(to *float64, v configfile.Node) error {
	f, err := strconv.ParseFloat(v.Text, 64)
	if v.Kind != configfile.Number || err != nil || !(f >= 0 && f <= 1e6) {
		return mustBeError("a number of US dollars from 0")
	}
	*to = f
	return nil
}
