package gateway

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/gateway/pins"
	"github.com/drawbridge-mcp/drawbridge/shield"
	"github.com/drawbridge-mcp/drawbridge/store"
)

// PinPlace says where the pins of a row's tools are kept: by the file that it stands in, and its name there. A row that stands in
// no file is one of a program's own, which says all of what it is.
func PinPlace(row config.Server) store.PinPlace {
	if !filepath.IsAbs(row.Origin.Path) {
		return store.PinPlace{Origin: "row " + row.Hash, Server: row.ID}
	}
	return store.PinPlace{Origin: row.Origin.Path, Server: row.ID}
}

// newPins makes what holds tools against what they said before, and against the lockfile of the person's own configuration.
func newPins(c Config, s config.Settings, db *store.DB) (*pins.Keeper, error) {
	var o pins.Options
	var err error
	if o.Lock, o.Named, err = lockPlace(c, s); err != nil {
		return nil, err
	}
	made := sync.OnceValues(func() (*shield.Shield, error) { return shield.New(shield.Options{Uncapped: true}) })
	return pins.New(db, func(before, after json.RawMessage) bool {
		sh, err := made()
		return err == nil && sh.Cosmetic(before, after)
	}, o), nil
}

// lockPlace is where the lockfile of a configuration is: nowhere for a program's own servers, beside which no files are looked for.
func lockPlace(c Config, s config.Settings) (path string, named bool, err error) {
	if !c.readsFiles() {
		return "", false, nil
	}
	return config.LockPlace(config.Options{Dir: c.Dir, LookupEnv: c.LookupEnv}, s)
}

// LockPlace says where the lockfile of a configuration is, whether it is there or not; empty where there is no place for one, or
// the settings cannot be read.
func LockPlace(c Config) string {
	s, err := settingsOf(c)
	if err != nil {
		return ""
	}
	path, _, err := lockPlace(c, s)
	if err != nil {
		return ""
	}
	return path
}

// settlePins has another look at what servers list, where a person may have decided about it since, and keeps how all of it is.
func (g *Gateway) settlePins(ctx context.Context) error {
	g.ground.pins.Refresh()
	ids := g.pins.Again()
	for _, m := range g.deck.Members() { // what was just looked at may not be on the deck yet: to look again waits for it
		if slices.ContainsFunc(m.Notes, func(n deck.Note) bool { return n.Did == "held" }) {
			ids = append(ids, m.Server)
		}
	}
	var err error
	if len(ids) > 0 {
		err = g.deck.Revet(ctx, ids...)
	}
	g.keepVetted(ctx)
	return err
}

// AcceptCommand is what a person types to accept what has that label and changed.
func AcceptCommand(id drawbridge.ServerID, label string) string { return pins.AcceptCommand(id, label) }

// Lockable says whether a lockfile speaks of a row. It does not of what a project brings: the file is the person's own, and two
// projects may each have a server of one name.
func Lockable(row config.Server) bool { return row.Origin.Kind != config.Project }

// EditLock changes a lockfile: change is given what it says, and says what it shall. One that is not there says nothing, and is
// made. What cannot be written to a lockfile is given back: definitions that two readers could read in two ways. The error names
// the file, and the line that is wrong in it.
func EditLock(path string, change func(said []shield.Locked) []shield.Locked) (leftOut []shield.Locked, err error) {
	return pins.Lock(path, change)
}

// Pins gives what is pinned of a part of a row's server, see shield.Parts, by name. The error is the store's.
func (g *Gateway) Pins(ctx context.Context, row config.Server, part string) (map[string]shield.Pin, error) {
	place := PinPlace(row)
	place.Part = part
	return g.ground.db.Pins(ctx, place)
}

// Pinned gives what a listing has of a part, by the names under which it is pinned; of two with one name, the first. Of a server
// without instructions it gives none.
func Pinned(l drawbridge.Listing, part string) []shield.Listed {
	if part == shield.PartInstructions && l.Instructions == "" {
		return nil
	}
	return pins.Of(l, part)
}
