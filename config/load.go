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

// MaxFile is the maximum size of a configuration file in bytes. MaxRows is the maximum number of servers that are read
// from one file, and from all files of a project together.
const (
	MaxFile = 4 << 20
	MaxRows = 1000
)

// maxProjectValues is the maximum number of values in all files of a project. The number of values is estimated as the
// number of line breaks, commas and opening braces. The limit allows 1,000 servers of 30 lines each, in two formats.
const maxProjectValues = 60_000

// maxForeignFile is the maximum size in bytes of another program's user-level file. It is larger than MaxFile, because
// some programs store a history in such a file.
const maxForeignFile = 32 << 20

// maxWarnings is the maximum number of warnings about one file that are returned.
const maxWarnings = 100

// Load reads the configuration that o describes. If o.Paths is empty, Load first reads Drawbridge's own project, user
// and legacy files. Then it reads the project files of other programs, in the order of Providers. Otherwise, Load reads
// the files in o.Paths, in that order, and the settings. The rows of a file are returned in the order of the file.
//
// The error is a *drawbridge.Fault with the code InvalidInput, in two cases. First, a path in o.Paths does not exist or
// cannot be parsed in the format of its extension; the error contains path, line and column. Second, the user-level
// drawbridge.toml is broken or has an invalid value: a gateway that ignored the setting might protect less than its
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

// LoadSettings reads only the user-level drawbridge.toml, and returns the Settings that Load returns. The error is that
// of Load.
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

// A Mistake describes one mistake in a configuration file.
type Mistake struct {
	File string `json:"file,omitempty"`
	// Line counts from 1; 0 means that the mistake concerns the whole file.
	Line int    `json:"line,omitempty"`
	Text string `json:"text"`
}

// String returns the position, if the file is known, and the text.
func (m Mistake) String() string {
	if m.File == "" {
		return m.Text
	}
	return Origin{Path: m.File, Line: m.Line}.String() + ": " + m.Text
}

// A RulesFile contains the rules of the user-level drawbridge.toml and the mistakes in this file.
type RulesFile struct {
	// Rules are the rules in force; nil if there are none. If there are Mistakes, Rules are incomplete and must not be
	// used.
	Rules *drawbridge.Rules
	// Inactive has the same value as Settings.InactiveRules.
	Inactive string
	// Mistakes are all mistakes in the file for which Load would return an error, including mistakes in other settings.
	Mistakes []Mistake
}

// LoadRules returns the rules in the user-level drawbridge.toml, and all mistakes in this file. A mistake is not an
// error of LoadRules. If the file cannot be read or parsed, the error is that of Load.
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
	// disabledBy maps the name of each server that the person's own files disable to the path of the file that disables
	// it.
	disabledBy map[string]string
	// claims maps each claim on a name to the index, in set.Servers, of the first row with this claim.
	claims map[nameClaim]int
	set    Configuration
	// mistakes are the mistakes in the settings file. rules are the rules that could be read from it.
	mistakes []*configfile.Error
	rules    *drawbridge.Rules
	// projectValues counts the values in the parsed files of the project, projectRows the rows in them.
	projectValues, projectRows int
}

// newLoader returns a loader with the base directories that o and the environment variables contain. A base directory
// that is unknown is empty, and no files are read from it.
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
		l.Config = "" // the XDG Base Directory Specification: a relative path must be ignored
	}
	if l.Config == "" && l.Home != "" {
		l.Config = filepath.Join(l.Home, ".config")
	}
	return l, nil
}

// sources returns the files to read, without duplicates.
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

// userSettingsSource returns the file that contains the settings: Options.SettingsFile, or the user-level
// drawbridge.toml. The second result is false if the location is unknown.
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

// conventionalSources returns the files that Load reads for a working directory, whether they exist or not. They are
// all files of Drawbridge and the project files of other programs. User-level files of other programs are excluded,
// even if they are in the working directory.
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

// openSource reads and parses a file. It also adds the file's disabledServers list to l.disabledBy, if the file is the
// person's own. The list disables rows of every file, so all files must be opened before a row is read.
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

// admitProjectFile returns an error if this file and the earlier files of the project together have more than
// maxProjectValues values. A stranger may have written the files, and parsing them must not delay every command.
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

// loadSource adds the rows and settings of a file to l.set.
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

// reportUnreadable returns an error if a person named the file or if settings are read from it. Otherwise it adds a
// warning.
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

// splitMistakes returns the mistakes that err joins. An error of another type becomes a mistake without a line.
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

// warnIgnoredSettings adds a warning if the file has settings that are ignored, because only the user-level
// drawbridge.toml may have settings.
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

// readServer reads one row of a file, in the format of the program that the file belongs to.
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

// addServer adds the row to Servers. If an earlier row has the same claim on a name (see nameClaim), addServer adds the
// row to Shadowed instead. A refused row has no claim and is always added to Servers. A project row without an approval
// shadows only other such rows, so a project cannot replace a person's own server by using its name.
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

// A nameClaim is the claim of a row on its name. If several rows have the same claim, only the first is used. Project
// rows without an approval compete only with each other for a name.
type nameClaim struct {
	id         drawbridge.ServerID
	unapproved bool
}

// isUnapprovedProject reports whether the row is from a project and is not in force. This includes a disabled row,
// because the row may never have been approved.
func (s *Server) isUnapprovedProject() bool {
	return s.Origin.Kind == OriginProject && s.Phase != drawbridge.Idle
}

func (l *loader) warn(src sourceFile, line int, format string, args ...any) {
	origin := Origin{Kind: src.kind, Path: src.path, Line: line}
	l.set.Warnings = append(l.set.Warnings, Warning{Origin: origin, Text: fmt.Sprintf(format, args...)})
}

// trimWarnings limits the number of warnings about one file. before is the number of warnings about earlier files.
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
