package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/llm"
	"github.com/spf13/cobra"
)

// modelsCommand implements the command "models".
type modelsCommand struct {
	Out, Err io.Writer
	// Open returns the language models and the settings of the agent.
	Open func(ctx context.Context) (*llm.ChatModels, config.AgentSettings, error)
}

func (a *app) newModelsCommand() modelsCommand {
	return modelsCommand{Out: a.Out, Err: a.Err, Open: a.openChatModels}
}

// openChatModels opens the language models of the configuration. It sends no request.
func (a *app) openChatModels(ctx context.Context) (*llm.ChatModels, config.AgentSettings, error) {
	set, err := a.readConfig(ctx)
	if err != nil {
		return nil, config.AgentSettings{}, err
	}
	m, err := gateway.OpenChatModels(gateway.Config{LookupEnv: a.Env, Environ: a.Environ}, set.Settings,
		a.vaultSecrets(), nil)
	return m, set.Settings.Agent, err
}

// agentNeedsKeyText says what the agent needs, if no model can be used.
const agentNeedsKeyText = `To talk to a model that uses the tools, set the key of a provider, then start drawbridge again:
  drawbridge secret set ANTHROPIC_API_KEY
OPENAI_API_KEY, GEMINI_API_KEY and OPENROUTER_API_KEY work too; Ollama needs no key.`

// hasModel reports whether a provider of models has a key, or needs none and runs on this machine. A provider that cannot
// be reached counts: the session tells why.
func (a *app) hasModel(ctx context.Context) bool {
	models, _, err := a.openChatModels(ctx)
	if err != nil {
		return true
	}
	defer models.Close()
	ctx, cancel := context.WithTimeout(ctx, modelSearchTimeout)
	defer cancel()
	_, err = models.Open(ctx)
	missing, ok := errors.AsType[*drawbridge.ModelError](err)
	return !ok || missing.Code != drawbridge.ModelKeyMissing
}

// modelSearchTimeout limits the search for a model at the first start.
const modelSearchTimeout = 5 * time.Second

// command returns the command.
func (d modelsCommand) command() *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use:   "models [PROVIDER]",
		Short: "Show the language models that Drawbridge's own agent can use",
		Long: `Show the providers of language models, where the key of each is, and whether it can be reached.
With a PROVIDER, or with --all, show the models that it lists.

A key is read from api_key in [models.providers.NAME], else from the provider's environment
variable, else from the stored secret of the same name. The command asks each provider that has a
key for its list of models; that costs nothing. No key is shown.`,
		Example: "  drawbridge models\n  drawbridge models anthropic\n  drawbridge secret set OPENAI_API_KEY && drawbridge models openai",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return exactArgs(1, "at most one provider")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			m, settings, err := d.Open(cmd.Context())
			if err != nil {
				return err
			}
			defer m.Close()
			r := modelsReport{}
			if len(args) == 1 {
				one, ok := m.Status(cmd.Context(), args[0])
				if !ok {
					return usageError{fmt.Errorf("%q is not a provider of models%s", args[0],
						configfile.DidYouMean(args[0], m.ProviderNames()))}
				}
				r.add(one)
			} else {
				for _, one := range m.List(cmd.Context()) {
					r.add(one)
				}
				r.chosen(cmd.Context(), m, settings)
			}
			if err := cmd.Context().Err(); err != nil {
				return err
			}
			if asJSON {
				return PrintJSON(d.Out, r)
			}
			return d.print(r, len(args) == 1 || all)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "show the models of each provider")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, with all models")
	return cmd
}

// A modelsReport is what the command prints with --json.
type modelsReport struct {
	// Model is the model of the agent and Fallback its fallback model, as "provider/name". ModelError and FallbackError
	// say why there is none.
	Model         string            `json:"model,omitempty"`
	ModelError    string            `json:"model_error,omitempty"`
	Fallback      string            `json:"fallback_model,omitempty"`
	FallbackError string            `json:"fallback_error,omitempty"`
	Providers     []modelProviderJS `json:"providers"`
}

type modelProviderJS struct {
	Provider string       `json:"provider"`
	Kind     string       `json:"kind"`
	Address  string       `json:"address,omitempty"`
	Key      llm.KeyState `json:"key"`
	KeyName  string       `json:"key_name,omitempty"`
	Default  string       `json:"default_model,omitempty"`
	// Reachable reports whether the provider answered. Error says why it did not, and Next what to do.
	Reachable bool      `json:"reachable"`
	Error     string    `json:"error,omitempty"`
	Next      string    `json:"next,omitempty"`
	Models    []modelJS `json:"models"`
}

type modelJS struct {
	Name      string  `json:"name"`
	Window    int     `json:"window,omitempty"`
	MaxOutput int     `json:"max_output,omitempty"`
	Images    bool    `json:"images"`
	Input     float64 `json:"price_input,omitempty"`
	Output    float64 `json:"price_output,omitempty"`
}

// add adds a provider.
func (r *modelsReport) add(s llm.ProviderStatus) {
	p := modelProviderJS{Provider: s.Provider, Kind: s.Kind, Address: s.Address, Key: s.Key, KeyName: s.KeyName,
		Default: s.Default, Reachable: s.Err == nil, Models: []modelJS{}}
	if e, ok := errors.AsType[*drawbridge.ModelError](s.Err); ok {
		p.Error, p.Next = strings.ReplaceAll(string(e.Code), "_", " "), e.Next
		if e.Err != nil {
			p.Error = e.Err.Error()
		}
	}
	for _, i := range s.Models {
		p.Models = append(p.Models, modelJS{i.Name, i.Window, i.MaxOutput, i.Images, i.Price.Input, i.Price.Output})
	}
	r.Providers = append(r.Providers, p)
}

// chosen adds the models of the agent.
func (r *modelsReport) chosen(ctx context.Context, m *llm.ChatModels, s config.AgentSettings) {
	find := func(name string) (string, string) {
		model, err := m.Find(ctx, name)
		if err != nil {
			return "", err.Error()
		}
		return model.Info().String(), ""
	}
	r.Model, r.ModelError = find(s.Model)
	if s.FallbackModel != "" {
		r.Fallback, r.FallbackError = find(s.FallbackModel)
	}
}

// print prints the report, with the models if all is set.
func (d modelsCommand) print(r modelsReport, all bool) error {
	t := NewTable(d.Out)
	safetext.Fprintf(t, "NAME\tKEY\tMODELS\tDEFAULT\tSTATE\n")
	for _, p := range r.Providers {
		key := string(p.Key)
		if p.KeyName != "" && p.Key != llm.KeyMissing {
			key = p.KeyName
			if p.Key == llm.KeyIsStored {
				key += " (stored)"
			}
		}
		state := "reachable"
		if !p.Reachable {
			state = p.Error
			if p.Key == llm.KeyMissing {
				state = p.Next
			} else if p.Next != "" {
				state += " (" + p.Next + ")"
			}
		}
		safetext.Fprintf(t, "%s\t%s\t%d\t%s\t%s\n", p.Provider, key, len(p.Models), orDash(p.Default), state)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if all {
		if err := d.printModels(r); err != nil {
			return err
		}
	}
	for _, line := range []struct{ what, model, err string }{
		{"The agent uses", r.Model, r.ModelError}, {"Its fallback model is", r.Fallback, r.FallbackError},
	} {
		switch {
		case line.model != "":
			safetext.Fprintf(d.Out, "%s %s.\n", line.what, line.model)
		case line.err != "":
			safetext.Fprintf(d.Err, "%s no model: %s\n", line.what, line.err)
		}
	}
	return nil
}

// printModels prints the models of all providers.
func (d modelsCommand) printModels(r modelsReport) error {
	t := NewTable(d.Out)
	safetext.Fprintf(t, "\nNAME\tWINDOW\tMAX OUTPUT\tIMAGES\tPRICE IN/OUT\n")
	rows := 0
	for _, p := range r.Providers {
		for _, m := range p.Models {
			rows++
			images, price := "no", "-"
			if m.Images {
				images = "yes"
			}
			if m.Input > 0 || m.Output > 0 {
				price = fmt.Sprintf("$%.4g/$%.4g", m.Input, m.Output)
			}
			safetext.Fprintf(t, "%s/%s\t%s\t%s\t%s\t%s\n", p.Provider, m.Name, tokensOrDash(m.Window),
				tokensOrDash(m.MaxOutput), images, price)
		}
	}
	if rows == 0 {
		return nil
	}
	return t.Flush()
}

func tokensOrDash(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
