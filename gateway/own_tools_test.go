package gateway

import (
	"testing"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
)

// TestCommandsAreConfinedByProfile has a confinement for everybody, and others for two profiles.
func TestCommandsAreConfinedByProfile(t *testing.T) {
	auto, required := config.Confinement{Level: config.ConfineAuto}, config.Confinement{Level: config.ConfineRequired}
	for name, tt := range map[string]struct {
		settings config.DeckSettings
		want     map[deck.Profile]string
	}{
		"none":     {config.DeckSettings{}, map[deck.Profile]string{deck.NoProfile: "", deck.Survey: ""}},
		"for all":  {config.DeckSettings{Confine: auto}, map[deck.Profile]string{deck.NoProfile: config.ConfineAuto, deck.Survey: config.ConfineAuto}},
		"by alias": {config.DeckSettings{ConfineProfiles: map[string]config.Confinement{"built-in": required}}, map[deck.Profile]string{deck.NoProfile: "", deck.Survey: config.ConfineRequired, deck.All: ""}},
		"in place of that for all": {config.DeckSettings{Confine: auto, ConfineProfiles: map[string]config.Confinement{"all": required}},
			map[deck.Profile]string{deck.NoProfile: config.ConfineAuto, deck.All: config.ConfineRequired}},
	} {
		shell := newShell(tt.settings)
		for profile, level := range tt.want {
			c := shell.Confine(deck.ShellCommand{Dir: t.TempDir(), Profile: profile})
			if (c != nil) != (level != "") || c != nil && c.Required != (level == config.ConfineRequired) {
				t.Errorf("%s, profile %q: %+v; want %q", name, profile, c, level)
			}
		}
	}
}
