# Reads one release of tacit in Julia: values with their intervals, and what its certificate says.
#
#   julia read_release.jl out/demo "people by region"
#
# Needs the packages CSV, DataFrames and JSON3.
using CSV, DataFrames, JSON3, SHA

function read_release(folder, name)
    stem = replace(name, " " => "-")
    file = joinpath(folder, "values", stem * ".csv")
    certificate = JSON3.read(read(joinpath(folder, "certificates", stem * ".json"), String))
    bytes2hex(open(sha256, file)) == certificate.values.sha256 ||
        error("the values are not the ones of the certificate")
    (values = CSV.read(file, DataFrame), confidence = certificate.intervals.confidence,
     bound = certificate.guarantee.bound, unit = certificate.unit, meaning = certificate.meaning)
end

if length(ARGS) == 2
    release = read_release(ARGS[1], ARGS[2])
    println(first(release.values, 6))
    println("rows: ", nrow(release.values))
    println("confidence of the intervals: ", release.confidence)
end
