import ai.vespa.rankingexpression.importer.configmodelview.ImportedMlModels;
import ai.vespa.rankingexpression.importer.lightgbm.LightGBMImporter;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.yahoo.config.model.application.provider.FilesApplicationPackage;
import com.yahoo.schema.ApplicationBuilder;
import com.yahoo.schema.RankProfile;
import com.yahoo.schema.RankProfileRegistry;
import com.yahoo.search.query.profile.QueryProfileRegistry;
import com.yahoo.searchlib.rankingexpression.evaluation.MapContext;
import com.yahoo.searchlib.rankingexpression.evaluation.Value;
import java.io.File;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Executors;

/**
 * Reads the application in the folder of the first argument by Vespa's parser and its importer of LightGBM's models.
 * Writes {rank profile: [score of its second phase]} for the rows [{rank feature: number}] of the file of the second.
 */
public class Score {
  public static void main(String[] given) throws Exception {
    ObjectMapper mapper = new ObjectMapper();
    JsonNode rows = mapper.readTree(new File(given[1]));
    var threads = Executors.newSingleThreadExecutor();
    var trees = new ImportedMlModels(new File(given[0], "models"), threads, List.of(new LightGBMImporter()));
    threads.shutdown();
    var application = FilesApplicationPackage.fromDir(new File(given[0]), Map.of());
    var profiles = new RankProfileRegistry();
    var builder = new ApplicationBuilder(application, (level, message) -> System.err.println(message), profiles);
    builder.build(true);
    Map<String, List<Double>> scores = new TreeMap<>();
    for (RankProfile declared : profiles.rankProfilesOf(builder.getSchema())) {
      RankProfile profile = declared.compile(new QueryProfileRegistry(), trees);
      if (profile.getSecondPhaseRanking() == null) continue; // default and unranked, which are Vespa's own
      scores.put(profile.name(), new ArrayList<>());
      for (JsonNode row : rows)
        scores.get(profile.name()).add(profile.getSecondPhaseRanking().evaluate(values(profile, row)).asDouble());
    }
    System.out.println(mapper.writeValueAsString(scores));
  }

  /** Values of rank features, NaN for null, and of the functions of a profile. */
  private static MapContext values(RankProfile profile, JsonNode row) {
    MapContext values = new MapContext() {
      @Override
      public Value get(String name) {
        var function = profile.getFunctions().get(name);
        if (function != null) return function.function().getBody().evaluate(this);
        if (!names().contains(name)) throw new IllegalArgumentException(name + " has no value");
        return super.get(name);
      }
    };
    row.fields().forEachRemaining(e -> values.put(e.getKey(), e.getValue().asDouble(Double.NaN)));
    return values;
  }
}
