package cpu

var (
	ParseMax         = parseMax
	ParseQuota       = parseQuota
	ParseUsage       = parseUsage
	ParseNanoseconds = parseNanoseconds
	ParseStat        = parseStat
	GroupPath        = groupPath
	MountOf          = mountOf
	Folders          = folders
)
