package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/clientconfig"
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// MaxFile is the maximum size of a configuration file in bytes. MaxRows is the maximum number of servers read from one
// file, and from all files of a project together.
const (
	MaxFile = 4 << 20
	MaxRows = 1000
)

// maxProjectValues is the maximum number of values in all files of a project, as their separators show: 1,000 servers
// of 30 lines each, in two formats.
const maxProjectValues = 60_000

// maxForeignFile is the maximum size in bytes of another program's file among the person's own: some keep a history in
// it.
const maxForeignFile = 32 << 20

// maxWarnings is how many warnings about one file are kept.
const maxWarnings = 100

// Load reads the configuration that o describes. Providers come in the order of Providers, and the files of each in its
// order. The native family's project, user and legacy files come first, then the project files of other programs. With
// o.Paths the order is that of the paths. Within a file, the order of the file is kept.
//
// The error is a *drawbridge.Fault with the code InvalidInput. One case is a path in o.Paths that does not exist or
// does not parse as its extension demands; the error has the path, line and column. The other is a user-level
// drawbridge.toml that is broken or has a bad value, since a gateway that ignores a setting may guard less than its
// owner expects. Any other problem is a warning, or the Reason of a row.
func Load(o Options) (Configuration, error) {
	l, err := newLoader(o)
	if err != nil {
		return Configuration{}, err
	}
	sources, err := l.sources(o.Paths)
	if err != nil {
		return Configuration{}, err
	}
	for i := range sources {
		l.openSource(&sources[i])
	}
	for _, src := range sources {
		if err := l.loadSource(src); err != nil {
			return Configuration{}, err
		}
	}
	return l.set, nil
}

// LoadSettings reads only the person's own drawbridge.toml: the Settings that Load returns. The error is as for Load.
func LoadSettings(o Options) (Settings, error) {
	l, err := newLoader(o)
	if err != nil {
		return Settings{}, err
	}
	src, ok := l.userSettingsSource()
	if !ok {
		return Settings{}, nil
	}
	l.openSource(&src)
	err = l.loadSource(src)
	return l.set.Settings, err
}

// A Mistake is a mistake in a configuration file.
type Mistake struct {
	File string `json:"file,omitempty"`
	// Line counts from 1; 0 means that the mistake concerns the whole file.
	Line int    `json:"line,omitempty"`
	Text string `json:"text"`
}

// String returns the place and the text.
func (m Mistake) String() string {
	if m.File == "" {
		return m.Text
	}
	return Origin{Path: m.File, Line: m.Line}.String() + ": " + m.Text
}

// A RulesFile holds the rules of a person's drawbridge.toml and the mistakes in it.
type RulesFile struct {
	// Rules are the rules in force, nil if there are none. With Mistakes they are not complete: do not apply them.
	Rules *drawbridge.Rules
	// Inactive is as Settings.InactiveRules.
	Inactive string
	// Mistakes are all mistakes for which Load would return an error, those of other settings too.
	Mistakes []Mistake
}

// LoadRules reads only the rules of the person's own drawbridge.toml, with all mistakes in that file. The error is as
// for Load, for a file that cannot be read or parsed.
func LoadRules(o Options) (RulesFile, error) {
	l, err := newLoader(o)
	if err != nil {
		return RulesFile{}, err
	}
	src, ok := l.userSettingsSource()
	if !ok {
		return RulesFile{}, nil
	}
	l.openSource(&src)
	if err = l.loadSource(src); len(l.mistakes) > 0 {
		err = nil
	}
	f := RulesFile{Rules: l.rules, Inactive: l.set.Settings.InactiveRules}
	for _, m := range l.mistakes {
		f.Mistakes = append(f.Mistakes, Mistake{src.path, m.Line, m.Text})
	}
	return f, err
}

type loader struct {
	clientconfig.BaseDirs
	settings string
	approved func(Server) bool
	// disabledBy maps a name that the person's own files disable to the file that does.
	disabledBy map[string]string
	// claims has the index in set.Servers of the row that holds each claim.
	claims map[nameClaim]int
	set    Configuration
	// mistakes are those of the settings file, and rules its rules as far as they could be read.
	mistakes []*configfile.Error
	rules    *drawbridge.Rules
	// projectValues counts the values in the project's files that were parsed, projectRows their rows.
	projectValues, projectRows int
}

// newLoader finds the base directories. Without a home it reads no user-level files.
func newLoader(o Options) (*loader, error) {
	l := &loader{approved: o.Approved, settings: o.SettingsFile, disabledBy: map[string]string{},
		claims: map[nameClaim]int{}}
	l.BaseDirs = clientconfig.BaseDirs{OS: runtime.GOOS, Config: o.XDGConfig, Home: o.Home, AppData: o.AppData,
		Lookup: o.LookupEnv}
	if l.Lookup == nil {
		l.Lookup = os.LookupEnv
	}
	var err error
	if l.Project, err = filepath.Abs(o.Dir); err != nil {
		return nil, configfile.FileFault("find the working directory", err)
	}
	homeVariable := "HOME"
	if l.OS == "windows" {
		homeVariable = "USERPROFILE"
	}
	for _, dir := range []struct {
		to       *string
		variable string
	}{{&l.Home, homeVariable}, {&l.Config, "XDG_CONFIG_HOME"}, {&l.AppData, "APPDATA"}} {
		if found, ok := l.Lookup(dir.variable); ok && *dir.to == "" {
			*dir.to = found
		}
	}
	if l.Config != "" && !filepath.IsAbs(l.Config) {
		l.Config = "" // the XDG specification: a relative path is to be ignored
	}
	if l.Config == "" && l.Home != "" {
		l.Config = filepath.Join(l.Home, ".config")
	}
	return l, nil
}

// sources lists the files to read, each once.
func (l *loader) sources(paths []string) ([]sourceFile, error) {
	if len(paths) == 0 {
		return uniqueSources(l.conventionalSources(l.Project, OriginProject)), nil
	}
	var all []sourceFile
	for _, path := range configfile.SplitPaths(l.Project, paths) {
		abs := l.absolutePath(path)
		info, err := os.Stat(abs)
		switch {
		case path == "" || err != nil:
			return nil, configfile.UnreadableFault(path, err)
		case info.IsDir():
			all = append(all, l.conventionalSources(abs, OriginExplicit)...)
		default:
			all = append(all, sourceFile{path: abs, kind: OriginExplicit, provider: "native",
				dialect: clientconfig.NativeDialect(abs), namedByPerson: true, readRows: true})
		}
	}
	if src, ok := l.userSettingsSource(); ok {
		all = append(all, src)
	}
	return uniqueSources(all), nil
}

// userSettingsSource returns the person's own drawbridge.toml; false if its location is unknown.
func (l *loader) userSettingsSource() (sourceFile, bool) {
	if l.settings != "" {
		path := l.absolutePath(l.settings)
		return sourceFile{path: path, kind: OriginUser, provider: "native",
				dialect: clientconfig.NativeDialect(clientconfig.SettingsPath), namedByPerson: true,
				readSettings: true},
			true
	}
	if l.Config == "" {
		return sourceFile{}, false
	}
	path := filepath.Join(l.Config, filepath.FromSlash(clientconfig.SettingsPath))
	return sourceFile{path: path, kind: OriginUser, provider: "native", dialect: clientconfig.NativeDialect(path),
		readSettings: true}, true
}

func (l *loader) absolutePath(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(l.Project, path)
}

// conventionalSources lists the conventional files of a working directory, whether they exist or not: all of the native
// family, and the project files of other programs. User-level files of other programs are excluded, even if the
// directory is their location too.
func (l *loader) conventionalSources(dir string, project OriginKind) []sourceFile {
	if configfile.SameFile(dir, l.Home) {
		project = OriginUser
	}
	base := l.BaseDirs
	base.Project = dir
	var all []sourceFile
	var theirs []string
	for _, p := range clientconfig.Providers() {
		for _, at := range p.Locations {
			if at.Root == clientconfig.PluginRoot {
				all = append(all, l.pluginSources(p, at, dir)...)
				continue
			}
			src := sourceFile{path: at.Resolve(base), kind: OriginUser, provider: p.Name, dialect: at.Shape,
				readRows: true, dir: dir}
			if at.Root == clientconfig.ProjectRoot {
				src.kind = project
			}
			native := p.Name == "native"
			switch {
			case src.path == "":
				continue
			case !native && src.kind == OriginUser:
				theirs = append(theirs, src.path)
				continue
			case native && at.Root == clientconfig.ConfigRoot && at.Path == clientconfig.SettingsPath:
				src.readSettings = true
			}
			all = append(all, src)
		}
	}
	own := configfile.StatExisting(theirs)
	return slices.DeleteFunc(all, func(src sourceFile) bool {
		return src.provider != "native" &&
			configfile.IsOneOfFiles(src.path, own)
	})
}

// openSource reads and parses a file. Names that the person's own files disable are disabled in every file, so they are
// collected before any row is read.
func (l *loader) openSource(src *sourceFile) {
	data, err := src.readBytes()
	if err == nil && src.kind == OriginProject {
		err = l.admitProjectFile(data)
	}
	if err == nil {
		src.root, err = src.dialect.Parse(data)
	}
	src.err = err
	if !src.dialect.Native || src.dialect.Settings || src.kind == OriginProject || err != nil {
		return
	}
	for name := range clientconfig.DisabledServers(src.root) {
		if l.disabledBy[name] == "" {
			l.disabledBy[name] = src.path
		}
	}
}

// admitProjectFile returns an error for a file with which the project's files have more values together than 1,000
// servers need. A project can come from a stranger, and parsing its files must not hold up every command.
func (l *loader) admitProjectFile(data []byte) error {
	n := 0
	for _, separator := range []string{"\n", ",", "{"} {
		n += bytes.Count(data, []byte(separator))
	}
	if l.projectValues+n > maxProjectValues {
		return fmt.Errorf("the project's configuration files have more than %d values together", maxProjectValues)
	}
	l.projectValues += n
	return nil
}

// loadSource reads the rows and settings of a file into the set.
func (l *loader) loadSource(src sourceFile) error {
	err := src.err
	if errors.Is(err, fs.ErrNotExist) && !src.namedByPerson {
		if !src.readSettings || !configfile.IsDanglingLink(src.path) {
			return nil
		}
		err = errors.New("a link in its path leads nowhere")
	}
	if err == nil && src.readSettings {
		err = l.loadSettings(src)
	}
	if err != nil {
		return l.reportUnreadable(src, err)
	}
	l.set.Sources = append(l.set.Sources, src.path)
	before := len(l.set.Warnings)
	defer func() { l.trimWarnings(src, before) }()
	if src.dialect.Settings && !src.readSettings {
		l.warnIgnoredSettings(src)
	}
	if src.readRows {
		l.loadRows(src)
	}
	return nil
}

// reportUnreadable returns an error if a person named the file or it holds their settings; else it adds a warning.
func (l *loader) reportUnreadable(src sourceFile, err error) error {
	at, ok := errors.AsType[*configfile.Error](err)
	if !ok {
		at = configfile.ErrorAt(0, "%s", configfile.WithoutPath(err))
	}
	if !src.namedByPerson && !src.readSettings {
		l.warn(src, at.Line, "%s; the file was left out", at.Text)
		return nil
	}
	place := Origin{Path: src.path, Line: at.Line}.String()
	if at.Col > 0 {
		place += fmt.Sprintf(":%d", at.Col)
	}
	return configfile.FileFault("read "+place, errors.New(at.Text))
}

func (l *loader) loadSettings(src sourceFile) error {
	r := &settingsReader{valueReader: valueReader{Dir: filepath.Dir(src.path), Home: l.Home, Lookup: l.Lookup},
		rules: rulesReader{File: src.path, Home: l.Home}}
	l.mistakes = splitMistakes(r.readTables(src.root))
	l.rules = r.settings.Rules
	if len(l.mistakes) > 0 {
		return l.mistakes[0]
	}
	l.set.Settings = r.settings
	l.warnProblems(src, r.problems)
	return nil
}

// splitMistakes returns the mistakes that an error joins.
func splitMistakes(err error) (all []*configfile.Error) {
	switch e := err.(type) {
	case nil:
	case *configfile.Error:
		all = append(all, e)
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			all = append(all, splitMistakes(one)...)
		}
	default:
		all = append(all, configfile.ErrorAt(0, "%s", err))
	}
	return all
}

// warnIgnoredSettings warns about settings in a file from which none are read.
func (l *loader) warnIgnoredSettings(src sourceFile) {
	for _, section := range src.root.Members {
		mine := func(m configfile.Member) bool { return section.Name == "mcp" && m.Name == "servers" }
		if slices.ContainsFunc(section.Value.Members, mine) && len(section.Value.Members) == 1 {
			continue
		}
		l.warn(src, section.Line, "the settings of this file are ignored: they are read from the user's own %s only",
			clientconfig.SettingsPath)
		return
	}
}

func (l *loader) loadRows(src sourceFile) {
	rows, problems := src.dialect.Rows(src.root, src.dir)
	l.warnProblems(src, problems)
	most := MaxRows
	if src.kind == OriginProject {
		most -= l.projectRows
		l.projectRows += min(len(rows), most)
	}
	if len(rows) > most {
		l.warn(src, rows[most].Line, "there are more than %d servers; those from here on were left out", MaxRows)
		rows = rows[:most]
	}
	for _, row := range rows {
		s, warnings := l.readServer(src, row)
		l.set.Warnings = append(l.set.Warnings, warnings...)
		l.addServer(s)
	}
}

// readServer reads one row of a file, in the format of the file's program.
func (l *loader) readServer(src sourceFile, row clientconfig.ServerRow) (Server, []Warning) {
	r := &rowReader{dir: l.Project, home: l.Home, lookup: l.Lookup, approved: l.approved, disabled: l.disabledBy}
	r.server.Origin = Origin{Kind: src.kind, Path: src.path, Line: row.Line}
	r.server.Provider = src.provider
	dir := ""
	if src.kind != OriginUser || row.Local {
		dir = src.dir
	}
	var notes []clientconfig.ConversionNote
	row.Value, notes = src.dialect.ToNative(row, dir)
	r.read(row)
	for _, n := range notes {
		r.warn(n.Line, "%s", n.Text)
	}
	return r.server, r.warnings
}

// addServer adds the row to the set. A refused row does not claim its name, and an unapproved project row claims it
// only against other such rows. A project must not replace a person's own server by using its name.
func (l *loader) addServer(s Server) {
	place := nameClaim{s.ID, s.isUnapprovedProject()}
	i, taken := l.claims[place]
	if s.Phase == drawbridge.Refused || !taken {
		if s.Phase != drawbridge.Refused {
			l.claims[place] = len(l.set.Servers)
		}
		l.set.Servers = append(l.set.Servers, s)
		return
	}
	l.set.Shadowed = append(l.set.Shadowed, s)
	if first := l.set.Servers[i]; first.Origin.Path == s.Origin.Path {
		l.set.Warnings = append(l.set.Warnings, Warning{s.Origin, s.ID,
			fmt.Sprintf("Server %q: the file has it twice; the one on line %d counts", s.ID, first.Origin.Line)})
	}
}

// A nameClaim is the claim of a row on its name: among rows in force, or among weak ones.
type nameClaim struct {
	id         drawbridge.ServerID
	unapproved bool
}

// isUnapprovedProject reports whether the row is from a project and not in force. A disabled row counts, because it may
// never have been approved.
func (s *Server) isUnapprovedProject() bool {
	return s.Origin.Kind == OriginProject && s.Phase != drawbridge.Idle
}

func (l *loader) warn(src sourceFile, line int, format string, args ...any) {
	origin := Origin{Kind: src.kind, Path: src.path, Line: line}
	l.set.Warnings = append(l.set.Warnings, Warning{Origin: origin, Text: fmt.Sprintf(format, args...)})
}

// trimWarnings limits the warnings about one file, so they do not bury others. before is the number of warnings from
// earlier files.
func (l *loader) trimWarnings(src sourceFile, before int) {
	if over := len(l.set.Warnings) - before - maxWarnings; over > 0 {
		l.set.Warnings = l.set.Warnings[:before+maxWarnings]
		l.warn(src, 0, "%d more warnings about this file are not shown", over)
	}
}

func (l *loader) warnProblems(src sourceFile, problems []*configfile.Error) {
	for _, p := range problems {
		l.warn(src, p.Line, "%s", p.Text)
	}
}
