def cases(package):
    return {}
def missing(package):
    return []
