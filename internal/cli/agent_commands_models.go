package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/tui"
	"github.com/drawbridge-mcp/drawbridge/llm"
)

// setModel shows or sets the model of the session.
func (c sessionCommands) setModel(ctx context.Context, name string) (tui.Output, error) {
	s := c.h.current().session
	if name != "" {
		models, _, err := c.a.openChatModels(ctx)
		if err != nil {
			return tui.Output{}, err
		}
		defer models.Close()
		f := c.h.flags
		f.model = name
		m, err := f.openModel(ctx, models)
		if err != nil {
			return tui.Output{}, err
		}
		if err := s.SetModel(ctx, m); err != nil {
			return tui.Output{}, err
		}
	}
	return tui.Output{Text: "The model is " + codeText(s.Snapshot().Model) + "."}, nil
}

// completeModels returns the models that begin with a text.
func (c sessionCommands) completeModels(ctx context.Context, args string) []string {
	models, _, err := c.a.openChatModels(ctx)
	if err != nil {
		return nil
	}
	defer models.Close()
	var names []string
	for _, provider := range models.List(ctx) {
		for _, m := range provider.Models {
			names = append(names, m.String())
		}
	}
	return beginning(args, names)
}

// completeProviders returns the providers of models that begin with a text.
func (c sessionCommands) completeProviders(ctx context.Context, args string) []string {
	names, err := c.a.completeModelProviders(ctx, nil)
	if err != nil {
		return nil
	}
	return beginning(args, names)
}

// modelsFor lists the models of a provider.
func (c sessionCommands) modelsFor(ctx context.Context, args string) (tui.Output, error) {
	if args == "" {
		names := c.completeProviders(ctx, "")
		return tui.Output{}, fmt.Errorf("/models-for expects: a provider (%s)", strings.Join(names, ", "))
	}
	return c.passOn(ctx, "models-for", args, "models")
}

// login asks for the key of a provider and stores it. Without a provider it lists them.
func (c sessionCommands) login(ctx context.Context, args string) (tui.Output, error) {
	if args == "" {
		return c.runSubcommand(ctx, "models"), nil
	}
	if strings.ContainsAny(args, " \t\n=") {
		return tui.Output{}, errors.New("/login takes the name of a provider; the key is asked for, and not typed in the same line")
	}
	status, err := c.provider(ctx, args)
	if err != nil {
		return tui.Output{}, err
	}
	name := status.KeyName
	switch status.Key {
	case llm.KeyInSettings:
		return tui.Output{}, fmt.Errorf("/login: api_key in [models.providers.%s] names the key", status.Provider)
	case llm.KeyInVariable:
		return tui.Output{}, fmt.Errorf("/login: the environment variable %s has the key, and comes before a stored one", name)
	case llm.KeyNotNeeded:
		return tui.Output{}, fmt.Errorf("/login: %s needs no key", status.Provider)
	}
	if name == "" {
		return tui.Output{}, fmt.Errorf("/login: the keys cannot be read: see \"drawbridge models %s\"", status.Provider)
	}
	service := c.a.adminService()
	if _, err := service.SecretProtection(); err != nil {
		return tui.Output{}, err // before the person types a value
	}
	key, err := c.a.session.asker.Ask(ctx, tui.CommandQuestion{Command: "/login", Kind: tui.ReplySecret,
		Question: "The key of " + status.Provider + ", kept as " + name})
	if err == nil && key == "" {
		err = io.EOF
	}
	if errors.Is(err, io.EOF) {
		return tui.Output{}, fmt.Errorf("/login: nothing was kept; \"drawbridge secret set %s\" stores a key too", name)
	}
	if err != nil {
		return tui.Output{}, err
	}
	kept, err := service.StoreSecret(name, []byte(key))
	if err != nil {
		return tui.Output{}, err
	}
	text := fmt.Sprintf("%s is kept, sealed with a key in the keychain. /model %s/NAME uses it.", codeText(name), status.Provider)
	if !kept.InKeychain {
		text = fmt.Sprintf("%s is kept. %s /model %s/NAME uses it.", codeText(name), kept.Text, status.Provider)
	}
	return tui.Output{Text: text}, nil
}

// logout removes the stored key of a provider.
func (c sessionCommands) logout(ctx context.Context, args string) (tui.Output, error) {
	if args == "" {
		return tui.Output{}, fmt.Errorf("/logout expects: a provider (%s)", strings.Join(c.completeProviders(ctx, ""), ", "))
	}
	status, err := c.provider(ctx, args)
	if err != nil {
		return tui.Output{}, err
	}
	if status.Key != llm.KeyIsStored {
		text := fmt.Sprintf("/logout: no key of %s is stored", status.Provider)
		if status.Key == llm.KeyInVariable {
			text += fmt.Sprintf("; it is in the environment variable %s", status.KeyName)
		}
		return tui.Output{}, errors.New(text)
	}
	users, err := c.a.adminService().RemoveSecret(ctx, status.KeyName)
	if err != nil {
		return tui.Output{}, err
	}
	text := codeText(status.KeyName) + " is forgotten. A model that is in use may keep it until the session ends."
	for _, u := range users {
		text += "\n\n" + codeText(string(u.Server)) + " still refers to it."
	}
	return tui.Output{Text: text}, nil
}

// provider returns the state of a provider of models.
func (c sessionCommands) provider(ctx context.Context, name string) (llm.ProviderStatus, error) {
	models, _, err := c.a.openChatModels(ctx)
	if err != nil {
		return llm.ProviderStatus{}, err
	}
	defer models.Close()
	status, ok := models.Status(ctx, name)
	if !ok {
		return status, fmt.Errorf("%s is not a provider of models%s", safetext.Quote(name),
			configfile.DidYouMean(name, models.ProviderNames()))
	}
	return status, nil
}
