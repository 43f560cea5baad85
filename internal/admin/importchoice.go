package admin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
)

// An ImportPick selects a server definition of another program that is to be copied. Index is its index in
// config.ImportScan.Candidates. If As is not empty, the copy gets this name.
type ImportPick struct {
	Index int
	As    drawbridge.ServerID
}

// PickImports returns a copy of scan.Candidates in which exactly the picked definitions have the status
// config.ImportNew. A picked definition has its new name, if it gets one. A new definition that is not picked gets the
// status config.ImportLeftOut. The error is a drawbridge.NameError, or a UserError for a definition that cannot be
// copied or a name that is already used.
func PickImports(scan config.ImportScan, picks []ImportPick) ([]config.ImportCandidate, error) {
	rows := slices.Clone(scan.Candidates)
	for i := range rows {
		if rows[i].Status == config.ImportNew {
			rows[i].Status, rows[i].Reason = config.ImportLeftOut, "you did not choose it"
		}
	}
	taken := slices.Clone(scan.OwnNames)
	for _, p := range picks {
		row := &rows[p.Index]
		if !IsImportable(scan.Candidates[p.Index]) {
			return nil, userErrorf("Server %q of %s cannot be copied: %s.", row.Name, row.ProviderTitle, row.Reason)
		}
		if p.As != "" {
			row.Name = p.As
		}
		if err := row.Name.Validate(); err != nil {
			return nil, err
		}
		if slices.Contains(taken, row.Name) {
			return nil, userErrorf("The name %q is taken: choose another name for the one of %s with --as %s:%s=NAME.",
				row.Name, row.ProviderTitle, row.Provider, scan.Candidates[p.Index].Name)
		}
		taken = append(taken, row.Name)
		row.Status, row.Reason = config.ImportNew, ""
	}
	return rows, nil
}

// IsImportable reports whether a definition can be copied, under its own name or, if that name is already used, under
// another name.
func IsImportable(c config.ImportCandidate) bool {
	switch c.Status {
	case config.ImportNew, config.ImportShadowed, config.ImportConflict:
		return len(c.Raw) > 0
	}
	return false
}

// ParseImportPicks converts words of a command line to picks. servers are words of the form [PROGRAM:]NAME, each of
// which picks a definition. If there are none, every new definition is picked. renames are words of the form
// [PROGRAM:]NAME=NEW, each of which picks a definition whose copy gets the name NEW. The error is a UserError.
func ParseImportPicks(scan config.ImportScan, servers, renames []string) ([]ImportPick, error) {
	var picks []ImportPick
	for i, c := range scan.Candidates {
		if len(servers) == 0 && c.Status == config.ImportNew {
			picks = append(picks, ImportPick{Index: i})
		}
	}
	add := func(p ImportPick) {
		picks = slices.DeleteFunc(picks, func(old ImportPick) bool { return old.Index == p.Index })
		picks = append(picks, p)
	}
	for _, word := range servers {
		i, err := findCandidate(scan.Candidates, word)
		if err != nil {
			return nil, err
		}
		c := scan.Candidates[i]
		picks = slices.DeleteFunc(picks, func(old ImportPick) bool { return scan.Candidates[old.Index].Name == c.Name })
		add(ImportPick{Index: i})
	}
	for _, word := range renames {
		old, name, ok := strings.Cut(word, "=")
		if !ok || name == "" {
			return nil, userErrorf("Invalid --as value %q. Write [PROGRAM:]NAME=NEW.", word)
		}
		i, err := findCandidate(scan.Candidates, old)
		if err != nil {
			return nil, err
		}
		add(ImportPick{i, drawbridge.ServerID(name)})
	}
	slices.SortFunc(picks, func(a, b ImportPick) int { return a.Index - b.Index })
	return picks, nil
}

// findCandidate returns the index in rows of the importable definition that word names. word has the form
// [PROGRAM:]NAME. It returns a UserError if there is no such definition, or if several programs have one and word names
// no program.
func findCandidate(rows []config.ImportCandidate, word string) (int, error) {
	program, name, ok := strings.Cut(word, ":")
	if !ok {
		program, name = "", word
	}
	var found []int
	var named []string
	for i, c := range rows {
		if string(c.Name) == name && (program == "" || c.Provider == program) && IsImportable(c) {
			found = append(found, i)
			named = append(named, c.Provider+":"+name)
		}
	}
	switch {
	case len(found) == 0:
		return 0, userErrorf("Found no server %q that can be copied (drawbridge import --dry-run lists them).", word)
	case len(found) > 1 && program == "":
		return 0, userErrorf("Several programs have a server %q: write %s.", name, strings.Join(named, " or "))
	}
	return found[0], nil
}

// FreeImportName returns a name for a copy of the definition with the index i, whose own name is already used. The name
// has the form NAME-PROGRAM, or NAME-PROGRAM-NUMBER if that is used too.
func FreeImportName(scan config.ImportScan, picks []ImportPick, i int) drawbridge.ServerID {
	taken := slices.Clone(scan.OwnNames)
	for _, c := range scan.Candidates {
		taken = append(taken, c.Name)
	}
	for _, p := range picks {
		taken = append(taken, p.As)
	}
	c := scan.Candidates[i]
	name := drawbridge.ServerID(fmt.Sprintf("%s-%s", c.Name, c.Provider))
	for n := 2; slices.Contains(taken, name); n++ {
		name = drawbridge.ServerID(fmt.Sprintf("%s-%s-%d", c.Name, c.Provider, n))
	}
	return name
}

// UnresolvedPicks returns the indexes in picks of the picks that need another name. Their name is already used by one
// of the person's servers, or by an earlier pick.
func UnresolvedPicks(scan config.ImportScan, picks []ImportPick) (clashes []int) {
	taken := slices.Clone(scan.OwnNames)
	for n, p := range picks {
		name := p.As
		if name == "" {
			name = scan.Candidates[p.Index].Name
		}
		if slices.Contains(taken, name) {
			clashes = append(clashes, n)
			continue
		}
		taken = append(taken, name)
	}
	return clashes
}

// An ImportOffer is a definition that a person can choose to copy.
type ImportOffer struct {
	Index int
	Name  drawbridge.ServerID
	// Programs are the titles of all programs in whose files this definition was found.
	Programs []string
	// Runs is the command line or the URL of the server, without secrets.
	Runs string
	// Marked is set if the definition is preselected: it is copied unless the person deselects it.
	Marked bool
	// Note explains to the person why the definition is not marked, and which of its members the copy changes or omits.
	Note string
}

// ImportOffers returns the definitions of a scan that the person can choose to copy. They include definitions whose
// name is already used for a different definition; these are not marked. If no definition is new, it returns nil,
// because the person has decided on the remaining ones in an earlier import.
func ImportOffers(scan config.ImportScan) (offers []ImportOffer) {
	fresh := false
	for i, c := range scan.Candidates {
		if !IsImportable(c) || c.SameAs != nil {
			continue
		}
		fresh = fresh || c.Status == config.ImportNew
		note := c.Reason
		if c.Status == config.ImportShadowed {
			note = "another definition of the same name"
		}
		notes := slices.Clone(c.Notes)
		if note != "" {
			notes = append([]string{note}, notes...)
		}
		offers = append(offers, ImportOffer{Index: i, Name: c.Name, Programs: []string{c.ProviderTitle},
			Runs: config.Server{Raw: c.Raw}.RedactedCommandLine(), Marked: c.Status == config.ImportNew,
			Note: strings.Join(notes, "; ")})
	}
	if !fresh {
		return nil
	}
	for _, c := range scan.Candidates {
		if c.SameAs == nil {
			continue
		}
		for n := range offers {
			if offers[n].Index == *c.SameAs && !slices.Contains(offers[n].Programs, c.ProviderTitle) {
				offers[n].Programs = append(offers[n].Programs, c.ProviderTitle)
			}
		}
	}
	return offers
}
